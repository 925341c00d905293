"""Reads the inputs that a network is calibrated with: tensors, or a file or a folder of them.

A file is .npy, or .npz with an array for each input, in their order; several inputs stand behind
each other along the first dim. A folder has such files, or pictures, which are resized to the size
of the input and scaled to 0 to 1.
"""

import os
from pathlib import Path

import torch

from ..errors import Error

_ARRAYS = (".npy", ".npz")
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def read(calibration, inputs: tuple) -> list[tuple]:
    """Batches as the module takes them. inputs: of the module, an example."""
    leaves = torch.utils._pytree.tree_leaves(inputs)
    if calibration is None:
        raise Error("int8 needs calibration inputs", _accepted(leaves))
    if isinstance(calibration, (str, os.PathLike)):
        found = files(Path(calibration), leaves, "calibration inputs")
        named = [(f" {file}", values) for file, values in found]
    elif isinstance(calibration, torch.Tensor):
        named = [("", (calibration,))]
    elif hasattr(calibration, "__iter__"):
        named = [(f" {at}", _listed(each)) for at, each in enumerate(calibration)]
    else:
        raise Error(
            f"calibration inputs are of type {type(calibration).__name__}",
            "accepted are a file, a folder, a tensor, or a list of what the module takes",
        )
    found = [batch for name, values in named for batch in _batches(name, values, leaves)]
    if not found:
        raise Error("there are no calibration inputs", _accepted(leaves))
    structure = torch.utils._pytree.tree_structure(inputs)
    return [torch.utils._pytree.tree_unflatten(list(batch), structure) for batch in found]


def _listed(value) -> tuple:
    return tuple(torch.utils._pytree.tree_leaves(value))


def _spelled(value: torch.Tensor) -> str:
    return f"{'x'.join(map(str, value.shape)) or 'scalar'} of {str(value.dtype)[6:]}"


def _accepted(leaves: list) -> str:
    kinds = " and ".join(_spelled(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))
    return f"accepted are inputs of {kinds}, or several behind each other along the first dim"


def _batches(name: str, values: tuple, leaves: list) -> list[tuple]:
    """The values split into what one call takes."""
    if len(values) != len(leaves):
        raise Error(
            f"calibration input{name} has {len(values)} tensors, the module takes {len(leaves)}",
            _accepted(leaves),
        )
    parts = [_parts(name, value, leaf, leaves) for value, leaf in zip(values, leaves)]
    if len({len(each) for each in parts if each is not None}) > 1:
        raise Error(
            f"calibration input{name} has tensors for different numbers of calls", _accepted(leaves)
        )
    count = max((len(each) for each in parts if each is not None), default=0)
    return list(
        zip(*([leaf] * count if each is None else each for each, leaf in zip(parts, leaves)))
    )


def _parts(name: str, value, leaf, leaves: list) -> list | None:
    """One tensor for each call; None: no tensor."""
    if not isinstance(leaf, torch.Tensor):
        return None
    if not isinstance(value, torch.Tensor):
        raise Error(
            f"calibration input{name} is of type {type(value).__name__}, not a tensor",
            _accepted(leaves),
        )
    is_real = value.dtype.is_floating_point
    if is_real != leaf.dtype.is_floating_point or not (is_real or value.dtype == leaf.dtype):
        raise Error(f"calibration input{name} is {_spelled(value)}", _accepted(leaves))
    if is_real and not value.isfinite().all():
        odd = "NaN" if value.isnan().any() else "an infinity"
        raise Error(f"calibration input{name} has {odd} in it", "accepted are finite numbers")
    value = value.detach().to(leaf.dtype)
    if value.shape == leaf.shape:
        return [value]
    if leaf.ndim and value.shape == leaf.shape[1:] and leaf.shape[0] == 1:
        return [value.unsqueeze(0)]
    if leaf.ndim and value.shape[1:] == leaf.shape[1:] and not value.shape[0] % leaf.shape[0]:
        return list(value.split(leaf.shape[0])) if len(value) else []
    raise Error(f"calibration input{name} is {_spelled(value)}", _accepted(leaves))


def files(path: Path, leaves: list, what: str):
    """A file, or each of a folder, with its tensors. what: they are called."""
    if not path.exists():
        raise Error(f"{path}: there is no such file or folder", f"accepted is either, with {what}")
    if not path.is_dir():
        listed = [path]
    else:
        known = (*_ARRAYS, *_PICTURES)
        listed = sorted(each for each in path.iterdir() if each.suffix.lower() in known)
        if not listed:
            raise Error(
                f"{path}: no {what} in this folder",
                f"accepted are files named {', '.join('*' + each for each in known)}",
            )
    for file in listed:
        yield file, _arrays(file) if file.suffix.lower() in _ARRAYS else _picture(file, leaves)


def _arrays(file: Path) -> tuple:
    import numpy

    try:
        found = numpy.load(file, allow_pickle=False)
        arrays = [found[name] for name in found.files] if hasattr(found, "files") else [found]
        return tuple(map(torch.from_numpy, arrays))
    except (ValueError, EOFError, TypeError, KeyError) as error:
        raise Error(
            f"{file}: not an array: {error}", "accepted is what numpy.save writes"
        ) from None
    except Exception as error:
        if type(error).__module__ != "zipfile":
            raise
        raise Error(f"{file}: {error}", "accepted is what numpy.savez writes") from None


def _picture(file: Path, leaves: list) -> tuple:
    if len(leaves) != 1 or leaves[0].ndim < 3 or leaves[0].shape[-3] not in (1, 3):
        raise Error(
            f"{file}: pictures have 1 or 3 channels, as one input of ...xCxHxW",
            _accepted(leaves),
        )
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise Error(
            f"{file}: pictures need the package pillow", f"files without it: {', '.join(_ARRAYS)}"
        ) from None
    import numpy

    channels, height, width = leaves[0].shape[-3:]
    try:
        with Image.open(file) as image:
            plain = image.convert("L" if channels == 1 else "RGB").resize((width, height))
    except UnidentifiedImageError:
        raise Error(f"{file}: not a picture", "accepted is what pillow reads") from None
    values = torch.from_numpy(numpy.array(plain)).reshape(height, width, channels).permute(2, 0, 1)
    values = values if leaves[0].dtype == torch.uint8 else values.to(leaves[0].dtype) / 255
    return (values.reshape(leaves[0].shape[-3:]),)
