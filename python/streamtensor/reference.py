"""PyTorch's own answer, to hold designs against: the unmodified model with its own cache and masks."""
from dataclasses import dataclass

import torch

from .models import Model


@dataclass
class Greedy:
    """Greedy decoding of one prompt. Row t belongs to the step that reads text token t."""
    ids: list[int]            # the new ones
    logits: torch.Tensor      # steps x vocabulary
    k: list[torch.Tensor]     # per layer: heads x steps x width
    v: list[torch.Tensor]


def greedy(model: Model, tensors: dict[str, torch.Tensor], prompt: list[int], new: int) -> Greedy:
    """tensors: the values of all of the model's parameters and buffers."""
    from transformers import DynamicCache
    ids, logits, cache, fresh = [], [], DynamicCache(), list(prompt)  # without a configuration it keeps every row
    with torch.no_grad():
        for _ in range(new):
            out = torch.func.functional_call(model.module, tensors, kwargs=dict(
                input_ids=torch.tensor([fresh]), past_key_values=cache, use_cache=True))
            cache = out.past_key_values
            logits.append(out.logits[0])
            fresh = [int(out.logits[0, -1].argmax())]
            ids += fresh
    return Greedy(ids, torch.cat(logits), [layer.keys[0] for layer in cache.layers],
                  [layer.values[0] for layer in cache.layers])
