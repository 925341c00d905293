"""Built-in model configurations, for machines without the model's folder or the hub. The figures
are those of each model's public config.json.
"""

_LLAMA3_ROPE = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=32.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8192,
)

BUILT_IN = {
    "gpt2": dict(model_type="gpt2"),
    "gpt2-medium": dict(model_type="gpt2", n_layer=24, n_embd=1024, n_head=16),
    "gpt2-large": dict(model_type="gpt2", n_layer=36, n_embd=1280, n_head=20),
    "gpt2-xl": dict(model_type="gpt2", n_layer=48, n_embd=1600, n_head=25),
    "qwen2.5-0.5b": dict(
        model_type="qwen2",
        hidden_size=896,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        vocab_size=151936,
        max_position_embeddings=32768,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        tie_word_embeddings=True,
        bos_token_id=151643,
        eos_token_id=151643,
    ),
    "qwen2-0.5b": dict(
        model_type="qwen2",
        hidden_size=896,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        vocab_size=151936,
        max_position_embeddings=131072,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        tie_word_embeddings=True,
        bos_token_id=151643,
        eos_token_id=151643,
    ),
    "llama-3.2-1b": dict(
        model_type="llama",
        hidden_size=2048,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        intermediate_size=8192,
        vocab_size=128256,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        rope_parameters=_LLAMA3_ROPE,
        tie_word_embeddings=True,
        bos_token_id=128000,
        eos_token_id=128001,
    ),
    "tinyllama-1.1b": dict(
        model_type="llama",
        hidden_size=2048,
        num_hidden_layers=22,
        num_attention_heads=32,
        num_key_value_heads=4,
        intermediate_size=5632,
        vocab_size=32000,
        max_position_embeddings=2048,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "gemma-3-1b": dict(
        model_type="gemma3_text",
        hidden_size=1152,
        num_hidden_layers=26,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        intermediate_size=6912,
        vocab_size=262144,
        max_position_embeddings=32768,
        sliding_window=512,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        rope_local_base_freq=1e4,
        query_pre_attn_scalar=256,
        tie_word_embeddings=True,
        bos_token_id=2,
        eos_token_id=1,
    ),
    "mistral-7b": dict(
        model_type="mistral",
        hidden_size=4096,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=14336,
        vocab_size=32000,
        max_position_embeddings=32768,
        sliding_window=4096,
        rms_norm_eps=1e-5,
        rope_theta=1e4,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    ),
}

# Names on the hub.
_ALIASES = {
    "tinyllama": "tinyllama-1.1b",
    "tinyllama-1.1b-chat-v1.0": "tinyllama-1.1b",
    "gemma-3-1b-pt": "gemma-3-1b",
    "gemma-3-1b-it": "gemma-3-1b",
    "mistral-7b-v0.1": "mistral-7b",
    "qwen2.5-0.5b-instruct": "qwen2.5-0.5b",
    "qwen2-0.5b-instruct": "qwen2-0.5b",
    "llama-3.2-1b-instruct": "llama-3.2-1b",
}
_OWNERS = {"qwen", "meta-llama", "tinyllama", "google", "mistralai", "openai-community"}


def built_in(name: str) -> dict | None:
    """The configuration of that name: ours, or the hub's name with or without its owner."""
    owner, _, rest = name.lower().rpartition("/")
    if owner and owner not in _OWNERS:
        return None
    return BUILT_IN.get(_ALIASES.get(rest, rest))
