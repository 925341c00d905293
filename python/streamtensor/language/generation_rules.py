"""What generation_config.json says about the choice of tokens, applied by transformers' own code.

Rules change the logits before a token is chosen, so they need the logits of every step.
"""

import copy
from pathlib import Path

import torch

from ..errors import Error
from ..lowering.graph import told
from .models import Model

SAMPLING = ("temperature", "top_k", "top_p")
# entries that change logits and depend on nothing but the text so far
_RULES = (
    "repetition_penalty",
    "no_repeat_ngram_size",
    "bad_words_ids",
    "sequence_bias",
    "min_length",
    "min_new_tokens",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
)
# entries that do not concern which token is chosen, or that options of a command say
_OTHERS = (
    "bos_token_id eos_token_id pad_token_id decoder_start_token_id max_length max_new_tokens "
    "do_sample transformers_version use_cache cache_implementation num_return_sequences "
    "return_dict_in_generate output_attentions output_hidden_states output_scores output_logits "
    "early_stopping length_penalty chat_format"
).split()


class GenerationRules:
    """The entries of one generation_config.json that differ from transformers' defaults."""

    def __init__(self, module: torch.nn.Module, config, new: int):
        """new: tokens that are generated at most."""
        self._module, self._config, self._new = module, config, new
        self._processors: dict[int, list] = {}  # by length of the prompt
        said = config.to_diff_dict()
        self.applied = [name for name in _RULES if said.get(name) is not None]
        self.sampling = (
            {name: said[name] for name in SAMPLING if said.get(name) is not None}
            if config.do_sample
            else {}
        )
        known = {*_RULES, *SAMPLING, *_OTHERS}
        self.ignored = [name for name in said if name not in known and not name.startswith("_")]

    @classmethod
    def of(cls, model: Model, new: int) -> "GenerationRules | None":
        """The rules of the model's folder; None: it has none."""
        from transformers import GenerationConfig

        path = model.folder and Path(model.folder) / "generation_config.json"
        if not path or not path.is_file():
            return None
        try:
            return cls(model.module, GenerationConfig.from_pretrained(model.folder), new)
        except Exception as error:
            raise Error(f"{path}: not a generation configuration: {told(error)}") from error

    def logits(self, logits: torch.Tensor, ids: list[int], prompt: int) -> torch.Tensor:
        """The logits behind `ids`, of which the first `prompt` are given."""
        if prompt not in self._processors:
            self._processors[prompt] = self._made(prompt)
        found = logits[None].float()
        for processor in self._processors[prompt]:
            found = processor(torch.tensor([ids]), found)
        return found[0]

    def _made(self, prompt: int) -> list:
        config = copy.deepcopy(self._config)
        config.update(
            do_sample=False, num_beams=1, guidance_scale=None, max_length=prompt + self._new
        )
        self._module._prepare_special_tokens(config, device="cpu")
        return self._module._get_logits_processor(config, prompt, device="cpu")


def notes(rules: GenerationRules, on_device: bool, sampled: bool) -> list[str]:
    """What is not applied. on_device: the design chooses the tokens."""
    said = []
    if rules.sampling and not sampled:
        asked = ", ".join(f"{name} {value:g}" for name, value in rules.sampling.items())
        said.append(f"{asked} of generation_config.json not applied: --temperature samples")
    if rules.applied and on_device:
        said.append(
            f"{', '.join(rules.applied)} of generation_config.json not applied: the design "
            "chooses the tokens"
        )
    if rules.ignored:
        said.append(f"{', '.join(rules.ignored)} of generation_config.json not applied")
    return said
