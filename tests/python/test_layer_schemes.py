"""Schemes by layer, and what each layer costs when it alone is quantized."""

import pytest
import torch
from torch import nn

import streamtensor
from streamtensor import quantize

X = torch.randn(4, 64, generator=torch.Generator().manual_seed(5))


def perceptron(outlier: float = 1.0) -> nn.Sequential:
    """outlier: the factor of one weight of the second layer, by which its scales grow."""
    torch.manual_seed(3)
    layers = [nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10)]
    network = nn.Sequential(*layers).eval().requires_grad_(False)
    network[2].weight[:, 0] *= outlier
    return network


@pytest.mark.parametrize(
    "scheme, text",
    [
        ({"4": "w8a8", "*": "w4a8"}, "w4a8,4=w8a8"),
        ({"2": "w8a8"}, "fp32,2=w8a8"),
        ({"[02]": "fp32", "*": "w8a8"}, "w8a8,[02]=fp32"),
        ({"2": "w8a8", "[24]": "w4a8"}, "fp32,2=w8a8,[24]=w4a8"),  # the first match counts
    ],
)
def test_each_layer_has_its_own_scheme(core_built, scheme, text):
    network = perceptron()
    expected = quantize.quantized_copy(network, quantize.Scheme.parse(text))(X)
    for each in (scheme, text):
        with streamtensor.compile(network, (X,), quant=each) as design:
            torch.testing.assert_close(design(X), expected, rtol=1e-5, atol=1e-5)
    base = text.partition(",")[0]
    alike = quantize.quantized_copy(network, quantize.Scheme.parse(base))(X)
    assert (expected - alike).abs().max() > 1e-4


def test_layers_with_static_ranges_beside_real_ones(core_built):
    network = perceptron()
    scheme = {"2": "fp32", "*": "int8"}
    exact = streamtensor.quantized(network, (X,), [X], scheme)
    with streamtensor.compile(network, (X,), quant=scheme, calibration=[X]) as design:
        torch.testing.assert_close(design(X), exact(X), rtol=1e-5, atol=1e-5)
    kept = [value for value in exact.buffers() if value.dtype == torch.float32 and value.ndim == 2]
    assert [list(value.shape) for value in kept] == [[48, 48]]


@pytest.mark.parametrize("quant", ["w4a8", "int8"])
def test_the_most_costly_layer_is_found(core_built, quant):
    calibration = [X] if quant == "int8" else None
    found = streamtensor.sensitivity(perceptron(60.0), X, quant, calibration)
    assert [each.layer for each in found.layers][0] == "2"
    assert sorted(each.layer for each in found.layers) == ["0", "2", "4"]
    assert all(each.snr_db > found.whole.snr_db for each in found.layers[1:])
    assert found.without(1) == {"2": "fp32", "*": quant}
    assert str(found).count("\n") == len(found.table()) == 4


@pytest.mark.parametrize(
    "quant, message, note",
    [
        ({"9": "w8a8"}, "there is no layer '9'", "0, 2, 4"),
        ({"9": "int8"}, "there is no layer '9'", "0, 2, 4"),
        ({"2": "w8a9"}, "'2=w8a9' cannot be read", "LAYER=w4a8"),
        ({"2": "int8", "4": "w4a8"}, "cannot read '4=w4a8'", "LAYER=int8"),
        ({"2": "w8a8", "*": "bf16"}, "'2=w8a8' cannot be read", "all but bf16"),
    ],
)
def test_messages_say_what_is_accepted(core_built, quant, message, note):
    calibration = [X] if "int8" in quant.values() else None
    with pytest.raises(streamtensor.Error) as error:
        streamtensor.compile(perceptron(), (X,), quant=quant, calibration=calibration)
    told = "\n".join([str(error.value), *getattr(error.value, "notes", [])])
    assert message in told
    assert note in told


def test_sensitivity_takes_one_scheme(core_built):
    for quant in ("fp32", {"2": "w8a8"}):
        with pytest.raises(streamtensor.Error, match="is not one scheme"):
            streamtensor.sensitivity(perceptron(), X, quant)
