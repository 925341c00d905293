"""Compiles small models of many Hugging Face families that the compiler was not written for.

    model_table.py [NAME ...]            prints rows (default: of all models)
    model_table.py --write [NAME ...]    updates these rows in docs/models.md

A row says that the design's results equal PyTorch's, or why the model is rejected.
"""

import re
import sys
import time
import warnings

from common import ROOT, Table, first_cell, script_arguments

sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import streamtensor  # noqa: E402

TOLERANCE = 1e-4  # largest difference / largest value of PyTorch's
TOKENS = 8

TEXT = dict(
    vocab_size=96,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=64,
)
GROUPED = dict(**TEXT, num_key_value_heads=2)
PIXELS = dict(
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    image_size=32,
    patch_size=8,
)
T5 = dict(vocab_size=96, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)

# What the model is called, its class, its configuration, and the inputs: "ids", or a shape.
MODELS = {
    "ALBERT": ("AlbertModel", dict(embedding_size=32, **TEXT), "ids"),
    "BART": (
        "BartModel",
        dict(
            vocab_size=96,
            d_model=64,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=128,
            decoder_ffn_dim=128,
            max_position_embeddings=64,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            forced_eos_token_id=2,
        ),
        "ids",
    ),
    "BERT": ("BertModel", TEXT, "ids"),
    "BLOOM": ("BloomForCausalLM", dict(vocab_size=96, hidden_size=64, n_layer=2, n_head=4), "ids"),
    "CLIP text": ("CLIPTextModel", TEXT, "ids"),
    "CLIP vision": ("CLIPVisionModel", PIXELS, (1, 3, 32, 32)),
    "ConvNeXt": (
        "ConvNextModel",
        dict(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 2, 1], image_size=32),
        (1, 3, 32, 32),
    ),
    "DeiT": ("DeiTModel", PIXELS, (1, 3, 32, 32)),
    "DINOv2": (
        "Dinov2Model",
        dict(
            hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8
        ),
        (1, 3, 32, 32),
    ),
    "DistilBERT": (
        "DistilBertModel",
        dict(
            vocab_size=96, dim=64, hidden_dim=128, n_layers=2, n_heads=4, max_position_embeddings=64
        ),
        "ids",
    ),
    "ELECTRA": ("ElectraModel", dict(embedding_size=32, **TEXT), "ids"),
    "Falcon": (
        "FalconForCausalLM",
        dict(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
        "ids",
    ),
    "GPT-J": (
        "GPTJForCausalLM",
        dict(vocab_size=96, n_positions=64, n_embd=64, n_layer=2, n_head=4, rotary_dim=8),
        "ids",
    ),
    "GPT-NeoX": ("GPTNeoXForCausalLM", TEXT, "ids"),
    "Mamba": (
        "MambaForCausalLM",
        dict(vocab_size=96, hidden_size=32, state_size=8, num_hidden_layers=2),
        "ids",
    ),
    "Mixtral": ("MixtralForCausalLM", dict(**GROUPED, num_local_experts=4), "ids"),
    "MobileNetV1": ("MobileNetV1Model", dict(depth_multiplier=0.25, image_size=32), (1, 3, 32, 32)),
    "MobileNetV2": ("MobileNetV2Model", dict(depth_multiplier=0.25, image_size=32), (1, 3, 32, 32)),
    "MPNet": ("MPNetModel", TEXT, "ids"),
    "OLMo": ("OlmoForCausalLM", GROUPED, "ids"),
    "OLMo 2": ("Olmo2ForCausalLM", GROUPED, "ids"),
    "OPT": (
        "OPTForCausalLM",
        dict(
            vocab_size=96,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=128,
            max_position_embeddings=64,
            word_embed_proj_dim=64,
        ),
        "ids",
    ),
    "Phi": ("PhiForCausalLM", GROUPED, "ids"),
    "Phi-3": ("Phi3ForCausalLM", dict(**GROUPED, pad_token_id=0), "ids"),
    "Qwen3": ("Qwen3ForCausalLM", dict(**GROUPED, head_dim=16), "ids"),
    "ResNet": (
        "ResNetModel",
        dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic"),
        (1, 3, 32, 32),
    ),
    "RoBERTa": ("RobertaModel", TEXT, "ids"),
    "StableLM": ("StableLmForCausalLM", GROUPED, "ids"),
    "StarCoder2": ("Starcoder2ForCausalLM", GROUPED, "ids"),
    "T5 encoder": ("T5EncoderModel", T5, "ids"),
    "ViT": ("ViTModel", PIXELS, (1, 3, 32, 32)),
    "Whisper encoder": (
        "WhisperEncoder",
        dict(
            d_model=64,
            encoder_layers=2,
            encoder_attention_heads=4,
            encoder_ffn_dim=128,
            num_mel_bins=16,
            max_source_positions=32,
        ),
        (1, 16, 64),
    ),
}


class Tensors(torch.nn.Module):
    """The model's first result, for a call with its main input alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        options = (
            {"use_cache": False}
            if hasattr(self.model.config, "use_cache") and not isinstance(self.model, _whisper())
            else {}
        )
        return self.model(x, return_dict=False, **options)[0]


def _whisper():
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return WhisperEncoder


def build(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """The module with seeded weights, and an input for it."""
    class_name, options, kind = MODELS[name]
    kind_of_model = (
        _whisper() if class_name == "WhisperEncoder" else getattr(transformers, class_name)
    )
    torch.manual_seed(0)
    module = Tensors(kind_of_model(kind_of_model.config_class(**options))).eval()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=(2.0 / parameter[0].numel()) ** 0.5)
    return module, torch.randint(3, 96, (1, TOKENS)) if kind == "ids" else torch.randn(kind)


def verdict(name: str) -> str:
    """Equal, and how nearly; or refused, and why."""
    module, x = build(name)
    with torch.no_grad():
        expected = module(x)
    try:
        with streamtensor.compile(module, (x,)) as design:
            found = design(x)
    except streamtensor.Error as error:
        return reason(str(error))
    error = float((found - expected).abs().max() / expected.abs().max())
    return f"equal, {error:.0e}" if error <= TOLERANCE else f"WRONG, {error:.0e}"


def reason(text: str) -> str:
    """The first line of a refusal, without its place, and PyTorch's op if it is named."""
    first, *rest = text.splitlines()
    first = re.sub(r"^\S+: error: ", "", first)
    first = re.sub(r"(.*): .* \(\S+:\d+\)$", r"\1", first).replace("|", "\\|")
    named = next(
        (line.removeprefix("note: that is ") for line in rest if line.startswith("note: that is ")),
        None,
    )
    return f"refused: {first[:160]}" + (f" ({named})" if named else "")


def row(name: str) -> str:
    start = time.monotonic()
    said = verdict(name)
    print(f"{name}: {said} ({time.monotonic() - start:.0f} s)", file=sys.stderr, flush=True)
    return f"| {name} | {said} |"


def table(rows: dict[str, str]) -> str:
    works = sum(" equal, " in text for text in rows.values())
    return "\n".join(
        [
            "| model | design |",
            "|---|---|",
            *(rows[name] for name in MODELS if name in rows),
            "",
            f"{works} of {len(rows)} work.",
        ]
    )


def key(line: str) -> str | None:
    return name if (name := first_cell(line)) in MODELS else None


TABLE = Table("models.md", "model_table.py", key)


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = [name for name in arguments if name != "--write"] or list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        sys.exit(f"{unknown[0]} is none of {', '.join(MODELS)}")
    rows = {name: row(name) for name in names}
    if "--write" not in arguments:
        print(table(rows))
        return 0
    TABLE.write(table({**TABLE.rows(), **rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main(script_arguments(__doc__, ("--write",))))
