"""Losses in which PyTorch looks at values while it traces them, or that have no decomposition."""

import math
import warnings

import torch

from ..errors import Error

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(loss, reduction):
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """PyTorch refuses a negative variance, which only a run knows."""
    if isinstance(var, torch.Tensor):
        if var.shape != x.shape and var.shape == x.shape[:-1]:
            var = var.unsqueeze(-1)
        warnings.warn(
            "streamtensor: gaussian_nll_loss takes eps for a negative variance", stacklevel=2
        )
        var = var.clamp(min=eps)
    else:
        var = torch.full_like(x, max(var, eps))
    loss = 0.5 * (torch.log(var) + (x - target) ** 2 / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """Sums over the alignments, step by step: of each place of the labels with blanks between."""
    if log_probs.ndim == 2:
        log_probs, alone = log_probs.unsqueeze(1), True
    else:
        alone = False
    steps, count, kinds = log_probs.shape
    targets = _rows(targets, target_lengths, count)
    lengths, wanted = (_numbers(each) for each in (input_lengths, target_lengths))
    blanks = torch.full_like(targets, blank)
    labels = torch.stack([blanks, targets.clamp(0, kinds - 1)], -1).flatten(1)
    labels = torch.cat([labels, torch.full((count, 1), blank)], 1).to(torch.int64)
    picked = log_probs.gather(2, labels.unsqueeze(0).expand(steps, -1, -1))
    none = torch.full((count, 2), -math.inf, dtype=log_probs.dtype)
    may_skip = torch.cat([none[:, :2] == 0, labels[:, 2:] != labels[:, :-2]], 1)[
        :, : labels.shape[1]
    ]
    place = torch.arange(labels.shape[1])
    sums = torch.where(
        (place == 0) | (place == 1) & (wanted > 0).unsqueeze(1), picked[0], -math.inf
    )
    for step in range(1, steps):
        before = torch.cat([none, sums], 1)
        two_before = torch.where(may_skip, before[:, :-2], -math.inf)
        found = _log_sum(sums, before[:, 1:-1], two_before) + picked[step]
        sums = torch.where((step < lengths).unsqueeze(1), found, sums)
    last = 2 * wanted.unsqueeze(1)
    ends = (place == last) | (place == last - 1)
    loss = -_log_sum(
        *(torch.where(ends & (place % 2 == at), sums, -math.inf).amax(1) for at in (0, 1))
    )
    loss = torch.where(lengths > 0, loss, torch.where(wanted > 0, math.inf, 0.0))
    if zero_infinity:
        loss = torch.where(loss == math.inf, 0.0, loss)
    reduction = reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]
    if reduction == "mean":
        loss = loss / wanted.clamp(min=1).to(loss.dtype)
    return _reduced(loss[0] if alone and reduction == "none" else loss, reduction)


def _numbers(lengths):
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.tensor(lengths)
    return lengths.reshape(-1)


def _rows(targets, lengths, count: int):
    """A row for each sequence, of targets that may stand one behind the other."""
    if targets.ndim == 2 or count == 1:
        return targets.reshape(count, -1)
    if isinstance(lengths, torch.Tensor):
        raise Error(
            "ctc_loss takes the targets of all sequences in one row",
            "accepted are targets with a row for each sequence, or target_lengths that are numbers",
        )
    longest = max(lengths)
    return torch.stack(
        [
            torch.nn.functional.pad(each, (0, longest - each.shape[0]))
            for each in targets.split(list(lengths))
        ]
    )


def _log_sum(*terms):
    largest = terms[0]
    for each in terms[1:]:
        largest = torch.maximum(largest, each)
    finite = torch.where(largest == -math.inf, 0.0, largest)
    return torch.log(sum(torch.exp(each - finite) for each in terms)) + finite
