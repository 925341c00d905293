"""Rewrites a program with complex numbers to one with pairs of real ones: real and imaginary parts
are tensors apart.

The program is traced again, with `Pair` where a complex tensor was. Inputs and results are real.
"""

import math

import torch
from torch.utils import _pytree

from ..errors import Error
from . import fourier

_aten = torch.ops.aten
_PARTWISE = set(  # ops that act on both parts alike
    "view reshape _unsafe_view permute transpose t expand slice select unsqueeze squeeze flatten "
    "unflatten clone contiguous detach movedim swapaxes repeat roll flip index index_select gather "
    "sum mean cumsum neg fft_fftshift fft_ifftshift unfold diagonal tril triu narrow alias "
    "lift_fresh_copy expand_as view_as cat stack split split_with_sizes chunk unbind "
    "where constant_pad_nd pad index_put scatter copy _neg_view mT diag_embed select_scatter "
    "slice_scatter masked_fill zeros_like".split()
)
_PRODUCTS = set(
    "mul matmul mm bmm mv dot linear outer einsum inner tensordot conv1d conv2d vdot".split()
)
_TRACE = "trace"  # what a node is told of the lines that it comes from
_WITH_BIAS = {"linear", "conv1d", "conv2d"}


class Pair:
    """A complex tensor."""

    def __init__(self, re, im):
        self.re, self.im = re, im


def rewrite(program: torch.export.ExportedProgram, export, line_of):
    """The program without complex numbers.

    export: traces a module with its arguments. line_of: the user's line of a node.
    """
    if not any(map(_is_complex, program.graph.nodes)):
        return program
    program = program.run_decompositions({})  # nothing is written in place
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs:
            if _is_complex(node):
                raise Error(
                    "the module takes complex numbers",
                    "accepted are their parts: torch.view_as_complex(x) makes them of a tensor "
                    "[..., 2] of real numbers",
                )
    args, _ = program.example_inputs
    found = export(_Real(_Parts(program.module(check_guards=False), line_of)), args)
    for node in found.graph.nodes:
        node.meta["stack_trace"] = (node.meta.get("custom") or {}).get(_TRACE)
    return found


def _is_complex(node) -> bool:
    return any(
        isinstance(value, torch.Tensor) and value.is_complex()
        for value in _pytree.tree_leaves(node.meta.get("val"))
    ) or (node.op == "call_function" and node.target in _TRANSFORMS)


class _Real(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self._untracked = (parts,)

    def forward(self, *arguments):
        return self._untracked[0].run(*arguments)


class _Parts(torch.fx.Interpreter):
    def __init__(self, module, line_of):
        super().__init__(module)
        self.extra_traceback = False  # which is of our own code
        self._node, self._line_of = None, line_of
        self._constants = {
            node.target: self._parts_of(node.target)
            for node in module.graph.nodes
            if node.op == "get_attr"
        }

    def _parts_of(self, name):
        value = self.fetch_attr(name)
        if isinstance(value, torch.Tensor) and value.is_complex():
            return Pair(value.real.clone(), value.imag.clone())
        return value

    def get_attr(self, target, args, kwargs):
        return self._constants[target]

    def run_node(self, node):
        self._node = node
        told = node.meta.get("custom") or {}
        node.meta["custom"] = {**told, _TRACE: node.meta.get("stack_trace")}
        return super().run_node(node)

    def call_function(self, target, args, kwargs):
        function = _FUNCTIONS.get(_name(target))
        if not _has_pair((args, kwargs)) and not (function and _is_complex(self._node)):
            return super().call_function(target, args, kwargs)
        found = NotImplemented
        if function:
            found = function(*args, **kwargs)
        elif _name(target) in _PARTWISE:
            found = _partwise(target, args, kwargs)
        elif _name(target) in _PRODUCTS:
            found = _product(target, args, kwargs)
        if found is NotImplemented:
            raise Error(
                f"{target} works with complex numbers{self._line_of(self._node)}",
                "accepted of complex numbers are sums, products, quotients, absolute values, "
                "angles, exponentials, Fourier transforms, and what moves elements",
            )
        return found

    def output(self, target, args, kwargs):
        if _has_pair(args):
            raise Error(
                "the module gives complex numbers",
                "accepted are results of real numbers: torch.view_as_real(y) has both parts",
            )
        return super().output(target, args, kwargs)


def _name(target) -> str:
    return target.overloadpacket.__name__ if isinstance(target, torch._ops.OpOverload) else ""


def _has_pair(tree) -> bool:
    return any(isinstance(each, Pair | complex) for each in _pytree.tree_leaves(tree))


def _pair(value, like=None) -> Pair:
    """The parts of a number or a tensor."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, torch.Tensor):
        return Pair(value, torch.zeros_like(value))
    return Pair(value.real, value.imag)


def _part(tree, name: str):
    """The tree with this part of the complex values."""

    def part(each):
        if isinstance(each, Pair):
            return getattr(each, name)
        if isinstance(each, complex):
            return each.real if name == "re" else each.imag
        return each

    return _pytree.tree_map(part, tree)


def _partwise(target, args, kwargs):
    packet = _name(target)
    if packet == "where":
        args = (args[0], *map(_pair, args[1:]))
    elif packet in ("cat", "stack", "index_put", "select_scatter", "slice_scatter", "copy"):
        args = _pytree.tree_map_only(torch.Tensor, _float_pair, args)
    elif packet in ("masked_fill", "constant_pad_nd", "pad", "scatter"):
        filled = next((each for each in args[1:] if isinstance(each, int | float)), 0)
        if filled:
            return NotImplemented
    re, im = (target(*_part(args, name), **kwargs) for name in ("re", "im"))
    if isinstance(re, torch.Tensor):
        return Pair(re, im)
    return [Pair(*each) for each in zip(re, im)]


def _float_pair(value):
    return _pair(value) if value.is_floating_point() else value


def _product(target, args, kwargs):
    """A function that is linear in each complex argument: the sum over the parts of these."""
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    if _name(target) in _WITH_BIAS and bias is not None:
        if _name(target) != "linear":
            return NotImplemented
        return _sum(_product(target, args[:2], {}), bias)
    leaves, structure = _pytree.tree_flatten((args, kwargs))
    places = [at for at, each in enumerate(leaves) if isinstance(each, Pair | complex)]
    if _name(target) == "vdot":
        leaves = [_conjugated(leaves[0]), *leaves[1:]]
        target = _aten.dot.default
    sums = [None, None]
    for choice in range(1 << len(places)):
        imaginary = [choice >> at & 1 for at in range(len(places))]
        parts = list(leaves)
        for at, is_imaginary in zip(places, imaginary):
            parts[at] = _part(leaves[at], "im" if is_imaginary else "re")
        own, named = _pytree.tree_unflatten(parts, structure)
        found, turns = target(*own, **named), sum(imaginary) % 4
        found, into = (-found if turns > 1 else found), turns % 2
        sums[into] = found if sums[into] is None else sums[into] + found
    re, im = sums
    return Pair(
        torch.zeros_like(im) if re is None else re, torch.zeros_like(re) if im is None else im
    )


def _conjugated(x):
    return Pair(x.re, -x.im) if isinstance(x, Pair) else x


def _sum(x, y, *, alpha=1):
    x, y = _pair(x), _pair(y)
    return Pair(_added(x.re, y.re, alpha), _added(x.im, y.im, alpha))


def _added(x, y, alpha):
    return x + (y if alpha == 1 else alpha * y)


def _difference(x, y, *, alpha=1):
    x, y = _pair(x), _pair(y)
    return Pair(*(a - (b if alpha == 1 else alpha * b) for a, b in ((x.re, y.re), (x.im, y.im))))


def _quotient(x, y):
    if not isinstance(y, Pair | complex):
        return Pair(x.re / y, x.im / y)
    if isinstance(y, complex):
        y = 1 / y
        return _product(_aten.mul.Tensor, (x, y), {})
    size = torch.maximum(torch.abs(y.re), torch.abs(y.im))
    re, im = y.re / size, y.im / size
    square = (re * re + im * im) * size
    x = _pair(x)
    return Pair((x.re * re + x.im * im) / square, (x.im * re - x.re * im) / square)


def _power(x, exponent):
    if not isinstance(exponent, int | float) or exponent != int(exponent) or exponent < 0:
        return NotImplemented
    found = Pair(torch.ones_like(x.re), torch.zeros_like(x.re))
    for _ in range(int(exponent)):
        found = _product(_aten.mul.Tensor, (found, x), {})
    return found


def _exp(x):
    size = torch.exp(x.re)
    return Pair(size * torch.cos(x.im), size * torch.sin(x.im))


def _angle(x):
    return torch.atan2(x.im, x.re)


def _abs(x):
    return torch.hypot(x.re, x.im)


def _sign(x):
    size = _abs(x)
    one = torch.where(size == 0, 1.0, size)
    return Pair(x.re / one, x.im / one)


def _copied(x, *, dtype=None, **_):
    if isinstance(x, Pair):
        if dtype is None or dtype.is_complex:
            kind = dtype and dtype.to_real()
            return Pair(x.re.to(kind or x.re.dtype), x.im.to(kind or x.im.dtype))
        return x.re.to(dtype)
    return _pair(x.to(dtype.to_real()))


def _to(x, *args, **options):
    """As the overloads of `to` that name a type, a device, or both."""
    given = (*args, *options.values())
    return _copied(x, dtype=next((each for each in given if isinstance(each, torch.dtype)), None))


def _equal(x, y):
    x, y = _pair(x), _pair(y)
    return (x.re == y.re) & (x.im == y.im)


def _made(value):
    """A tensor of one complex value."""

    def made(shape, *rest, dtype=torch.complex64, **_):
        parts = _pair(complex(rest[0] if rest else value))
        kind = dtype.to_real()
        return Pair(*(torch.full(shape, each, dtype=kind) for each in (parts.re, parts.im)))

    return made


def _scaled(pair, by):
    if by == 1:
        return pair
    return Pair(pair.re * by, pair.im * by) if isinstance(pair, Pair) else pair * by


def _float(x):
    return x if isinstance(x, Pair) or x.is_floating_point() else x.float()


def _parts(x):
    x = _float(x)
    return (x.re, x.im) if isinstance(x, Pair) else (x, None)


def _fft(x, n=None, dim=-1, norm=None, *, inverse=False):
    re, im = _parts(x)
    count = n or re.shape[dim]
    found = fourier.transform(
        fourier.resized(re, dim, count), fourier.resized(im, dim, count), dim, inverse
    )
    return _scaled(Pair(*found), fourier.factor(norm, count, inverse))


def _ifft(x, n=None, dim=-1, norm=None):
    return _fft(x, n, dim, norm, inverse=True)


def _rfft(x, n=None, dim=-1, norm=None):
    return _half(_fft(x, n, dim, norm), dim)


def _half(x, dim):
    count = x.re.shape[dim] // 2 + 1
    return Pair(x.re.narrow(dim, 0, count), x.im.narrow(dim, 0, count))


def _irfft(x, n=None, dim=-1, norm=None):
    re, im = _parts(x)
    count = n or 2 * (re.shape[dim] - 1)
    return fourier.from_half(re, im, dim, count) * fourier.factor(norm, count, True)


def _ihfft(x, n=None, dim=-1, norm=None):
    return _conjugated(_half(_fft(x, n, dim, _INVERSE[norm]), dim))


def _hfft(x, n=None, dim=-1, norm=None):
    return _irfft(_conjugated(_pair(_float(x))), n, dim, _INVERSE[norm])


_INVERSE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _dims(x, s, dim):
    count = len(_parts(x)[0].shape)
    if dim is None:
        dim = range(-len(s), 0) if s else range(-count, 0)
    return list(zip([None if each == -1 else each for each in s or [None] * len(dim)], dim))


def _along(one):
    def along(x, s=None, dim=None, norm=None):
        for extent, each in _dims(x, s, dim):
            x = one(x, extent, each, norm)
        return x

    return along


def _rfftn(x, s=None, dim=None, norm=None):
    *others, (extent, last) = _dims(x, s, dim)
    x = _rfft(x, extent, last, norm)
    for extent, each in others:
        x = _fft(x, extent, each, norm)
    return x


def _irfftn(x, s=None, dim=None, norm=None):
    *others, (extent, last) = _dims(x, s, dim)
    for count, each in others:
        x = _ifft(x, count, each, norm)
    return _irfft(x, extent, last, norm)


def _of_two(function):
    return lambda x, s=None, dim=(-2, -1), norm=None: function(x, s, dim, norm)


def _r2c(x, dim, normalization, onesided):
    found = x
    for each in dim:
        found = _fft(found, None, each, "backward")
    counts = math.prod(x.shape[each] for each in dim)
    found = _scaled(found, fourier.factor(normalization, counts, False))
    return _half(found, dim[-1]) if onesided else found


def _c2c(x, dim, normalization, forward):
    counts = math.prod(x.re.shape[each] for each in dim)
    for each in dim:
        x = _fft(x, None, each, "backward" if forward else "forward", inverse=not forward)
    return _scaled(x, {0: 1, 1: 1 / math.sqrt(counts), 2: 1 / counts}[normalization])


def _c2r(x, dim, normalization, last):
    counts = last * math.prod(x.re.shape[each] for each in dim[:-1])
    for each in dim[:-1]:
        x = _fft(x, None, each, "forward", inverse=True)
    found = _irfft(x, last, dim[-1], "forward")
    return found * {0: 1, 1: 1 / math.sqrt(counts), 2: 1 / counts}[normalization]


def _window(window, n_fft, win_length, like):
    win_length = win_length or n_fft
    if window is None:
        window = torch.ones(win_length, dtype=like.dtype)
    low = (n_fft - win_length) // 2
    return torch.nn.functional.pad(window, (low, n_fft - win_length - low))


def _stft(
    x, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=None,
    return_complex=None, align_to_window=None,
):  # fmt: skip
    if isinstance(x, Pair) or align_to_window:
        return NotImplemented
    frames = x.unfold(-1, n_fft, hop_length or n_fft // 4)
    frames = frames * _window(window, n_fft, win_length, x)
    norm = "ortho" if normalized else None
    found = (_fft if onesided is False else _rfft)(frames, None, -1, norm)
    found = Pair(found.re.mT, found.im.mT)
    return found if return_complex else torch.stack([found.re, found.im], -1)


def _istft(
    x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,
    onesided=None, length=None, return_complex=False,
):  # fmt: skip
    if return_complex:
        return NotImplemented
    hop, norm = hop_length or n_fft // 4, "ortho" if normalized else None
    spectrum = Pair(x.re.mT, x.im.mT)
    one_sided = x.re.shape[-2] != n_fft if onesided is None else onesided
    frames = _irfft(spectrum, n_fft, -1, norm) if one_sided else _ifft(spectrum, norm=norm).re
    window = _window(window, n_fft, win_length, frames)
    count, total = frames.shape[-2], n_fft + hop * (frames.shape[-2] - 1)
    squares = (window * window).expand(count, n_fft)
    found = _overlapped(frames * window, total, hop)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    weight = _overlapped(squares, total, hop)[..., start:end]
    return fourier.resized(found[..., start:end] / weight, -1, end - start)


def _overlapped(frames, total: int, hop: int):
    """The sum of frames, each `hop` behind the last one."""
    shape = frames.shape[:-2]
    columns = frames.reshape(-1, *frames.shape[-2:]).mT
    found = torch.nn.functional.fold(columns, (1, total), (1, frames.shape[-1]), stride=(1, hop))
    return found.reshape(*shape, total)


_FUNCTIONS = {
    "view_as_complex": lambda x: Pair(*x.unbind(-1)),
    "view_as_real": lambda x: torch.stack([x.re, x.im], -1),
    "complex": Pair,
    "polar": lambda size, angle: Pair(size * torch.cos(angle), size * torch.sin(angle)),
    "real": lambda x: x.re,
    "imag": lambda x: x.im,
    "_conj": _conjugated,
    "conj": _conjugated,
    "_conj_physical": _conjugated,
    "conj_physical": _conjugated,
    "resolve_conj": lambda x: x,
    "resolve_neg": lambda x: x,
    "add": _sum,
    "sub": _difference,
    "div": _quotient,
    "reciprocal": lambda x: _quotient(_pair(torch.ones_like(x.re)), x),
    "pow": _power,
    "square": lambda x: _power(x, 2),
    "exp": _exp,
    "log": lambda x: Pair(torch.log(_abs(x)), _angle(x)),
    "abs": _abs,
    "angle": _angle,
    "sgn": _sign,
    "eq": _equal,
    "ne": lambda x, y: ~_equal(x, y),
    "isnan": lambda x: x.re.isnan() | x.im.isnan(),
    "_assert_tensor_metadata": lambda *_, **__: None,  # true of what was exported
    "_to_copy": _copied,
    "to": _to,
    "full": _made(0),
    "zeros": _made(0),
    "ones": _made(1),
    "fft_fft": _fft,
    "fft_ifft": _ifft,
    "fft_rfft": _rfft,
    "fft_irfft": _irfft,
    "fft_hfft": _hfft,
    "fft_ihfft": _ihfft,
    "fft_fft2": _of_two(_along(_fft)),
    "fft_ifft2": _of_two(_along(_ifft)),
    "fft_rfft2": _of_two(_rfftn),
    "fft_irfft2": _of_two(_irfftn),
    "fft_fftn": _along(_fft),
    "fft_ifftn": _along(_ifft),
    "fft_rfftn": _rfftn,
    "fft_irfftn": _irfftn,
    "_fft_r2c": _r2c,
    "_fft_c2c": _c2c,
    "_fft_c2r": _c2r,
    "stft": _stft,
    "istft": _istft,
}
_TRANSFORMS = {
    getattr(packet, overload)
    for name in _FUNCTIONS
    if "fft" in name and (packet := getattr(_aten, name, None))
    for overload in packet.overloads()
} | {_aten.stft.default, _aten.stft.center, _aten.istft.default}
