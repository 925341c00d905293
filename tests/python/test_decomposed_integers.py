"""Modules as PyTorch's quantizers write them (X86InductorQuantizer, XNNPACKQuantizer): integers of
`quantized_decomposed` between operators on real numbers.
"""

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers the operators
from torch import nn

import streamtensor
from streamtensor.quantization import decomposed_integers

_ops = torch.ops.quantized_decomposed
BYTES = {torch.uint8: (0, 255), torch.int8: (-128, 127)}


class Rounded(nn.Module):
    """Its input in bytes, and back."""

    def __init__(self, scale, zero, dtype=torch.uint8):
        super().__init__()
        self.form = scale, zero, *BYTES[dtype], dtype

    def forward(self, x):
        q = _ops.quantize_per_tensor(x, *self.form)
        return _ops.dequantize_per_tensor(q, *self.form)


class Layer(nn.Module):
    """A convolution or a linear layer with weights of 8 bits."""

    def __init__(self, layer, generator, channels=True, zero=0):
        super().__init__()
        self.layer, self.channels, self.zero = layer, channels, zero
        weight = layer.weight
        q = torch.randint(-128, 128, weight.shape, generator=generator).to(torch.int8)
        self.register_buffer("q", q)
        self.register_buffer("scale", torch.rand(len(weight), generator=generator) * 2e-3 + 1e-4)
        self.register_buffer("zeros", torch.zeros(len(weight), dtype=torch.int64))

    def forward(self, x):
        if self.channels:
            form = self.scale, self.zeros, 0, -128, 127, torch.int8
            weight = _ops.dequantize_per_channel(self.q, *form)
        else:
            weight = _ops.dequantize_per_tensor(self.q, 1e-3, self.zero, -128, 127, torch.int8)
        if isinstance(self.layer, nn.Linear):
            return nn.functional.linear(x, weight, self.layer.bias)
        return self.layer._conv_forward(x, weight, self.layer.bias)


class Net(nn.Module):
    def __init__(self, zero=7, dtype=torch.uint8, channels=True):
        super().__init__()
        made = torch.Generator().manual_seed(1)
        self.one = Layer(nn.Conv2d(3, 8, 3, 2, 1), made, channels)
        self.two = Layer(nn.Conv2d(8, 8, 3, padding="same", groups=8, bias=False), made)
        self.three = Layer(nn.Conv2d(8, 8, 1), made)
        self.four = Layer(nn.Linear(8, 5), made)
        self.x = Rounded(0.02, zero, dtype)
        self.a, self.b, self.c = Rounded(0.01, zero, dtype), Rounded(0.02, 3), Rounded(0.05, 100)

    def forward(self, x):
        x = self.a(nn.functional.max_pool2d(torch.relu(self.one(self.x(x))), 2))
        x = self.b(nn.functional.relu6(self.two(x)))
        x = self.c(self.b(nn.functional.max_pool2d(x, 2)) + self.b(self.three(x))[..., ::2, ::2])
        return self.four(x.flatten(2).transpose(1, 2))


def exported(module, x):
    torch.manual_seed(0)
    return torch.export.export(module.eval(), (x,)).module()


def operators(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def step_of(found, expected):
    """The difference in steps of the coarsest integers of the network, at its result."""
    return float((found - expected).abs().max() / expected.abs().max())


X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("dtype, zero", [(torch.uint8, 7), (torch.int8, -5), (torch.int8, 0)])
@pytest.mark.parametrize("channels", [True, False])
def test_contractions_between_bytes_are_computed_in_integers(dtype, zero, channels):
    plain = exported(Net(zero, dtype, channels), X)
    made = decomposed_integers.applied(plain, (X,))
    names = operators(made)
    assert sum("integer_convolution" in name for name in names) == 4
    assert sum("requantize_channels" in name for name in names) == 3
    assert sum("integer_max_pool" in name for name in names) == 2
    assert not any("aten.conv" in name or "aten.linear" in name for name in names)
    with torch.no_grad():
        found, expected = made(X), plain(X)
    assert found.shape == expected.shape and expected.abs().max() > 0.01
    assert step_of(found, expected) < 0.02


def test_what_has_no_form_stays_as_it_is():
    class Others(nn.Module):
        def __init__(self):
            super().__init__()
            made = torch.Generator().manual_seed(1)
            self.layer = Layer(nn.Conv2d(3, 4, 3, padding=1), made, False, zero=5)
            self.x = Rounded(0.02, 7)

        def forward(self, x):
            return self.layer(self.x(x)), nn.functional.pad(self.x(x), (1, 1)), self.x(x[..., ::2])

    plain = exported(Others(), X)
    made = decomposed_integers.applied(plain, (X,))
    assert not any("streamtensor" in name for name in operators(made))
    for found, expected in zip(made(X), plain(X)):
        assert torch.equal(found, expected)
    other = exported(nn.Conv2d(3, 4, 3), X)
    assert decomposed_integers.applied(other, (X,)) is other


def test_a_design_is_the_network():
    plain, x = exported(Net(), X[:1]), X[:1]
    made = decomposed_integers.applied(plain, (x,))
    with torch.no_grad(), streamtensor.compile(plain, (x,)) as design:
        assert torch.allclose(design(x), made(x), rtol=0, atol=1e-6)


def test_ranges_found_at_run_time():
    class Dynamic(nn.Module):
        def forward(self, x):
            found = []
            for choose, eps, dtype in (
                (_ops.choose_qparams, 1e-5, torch.uint8),
                (_ops.choose_qparams_symmetric, 1e-5, torch.int8),
                (_ops.choose_qparams, 1.0, torch.int8),
            ):
                form = *choose(x, *BYTES[dtype], eps, dtype), *BYTES[dtype], dtype
                q = _ops.quantize_per_tensor(x, *form)
                found += [q, _ops.dequantize_per_tensor(q, *form)]
            return found

    example = torch.linspace(0.5, 3, 12).reshape(3, 4)
    with streamtensor.compile(exported(Dynamic(), example), (example,)) as design:
        for x in (example, -example, X[0, 0, :3, :4]):
            for found, expected in zip(design(x), Dynamic()(x)):
                assert found.dtype == expected.dtype
                assert torch.allclose(found.float(), expected.float(), rtol=1e-6, atol=1e-6)
