"""What modules take and give besides tensors of f32: other types, numbers, None, containers, and
tensors that are written.
"""

import os
import signal
import time

import pytest
import torch
from conftest import stc
from test_operators import Call
from torch import nn
from torch.utils._pytree import tree_flatten

import streamtensor
from streamtensor.lowering import torch_lowering

X = torch.linspace(-1, 2, 24).reshape(4, 6)
BYTES = torch.tensor([0, 1, 5, 100, 127, 128, 200, 255], dtype=torch.uint8)
SMALL = torch.tensor([100, -128, 127, 5, -7, 0, 1, -1], dtype=torch.int8)


def same(found, wanted, tolerance=1e-5):
    found, wanted = tree_flatten(found), tree_flatten(wanted)
    assert found[1] == wanted[1]
    for got, right in zip(found[0], wanted[0]):
        assert type(got) is type(right)
        if isinstance(right, torch.Tensor):
            torch.testing.assert_close(got, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        else:
            assert got == pytest.approx(right) if isinstance(right, float) else got == right


def check(function, *inputs, times=1, tolerance=1e-5):
    """The design does what the function does, to its arguments too."""

    def copies():
        return torch.utils._pytree.tree_map(
            lambda each: each.clone() if isinstance(each, torch.Tensor) else each, inputs
        )

    module = function if isinstance(function, nn.Module) else Call(function)
    with streamtensor.compile(module, inputs) as design:
        for _ in range(times):
            given, taken = copies(), copies()
            same(design(*given), module(*taken), tolerance)
            same(given, taken)


def test_integers_of_8_and_16_bits_are_pytorchs(core_built):
    """Where torch-mlir would end the process, or read unsigned ones as signed."""

    def function(a, u, h):
        return (
            (a * 2 - 1, a // 2, a.max(), 1 - a, a % 3, -a, a.sort()[0], a.sum(), a.cumsum(0)),
            (a.view(2, 4) @ a.view(4, 2), a.maximum(a.flip(0)), a.clamp(min=-5), a == 5),
            (u * 2 - 1, u // 3, u.max(), u + u, u > 100, u == 200, u > -1, u.clamp(10, 200)),
            (u.float() / 255, (u.float() * 1.5).to(torch.uint8), a.to(torch.uint8), u & 12),
            (torch.cat([u, torch.tensor([3, 200], dtype=torch.uint8)]), torch.where(u > 5, u, 7)),
            (h * 300, h - 40000, u.float().mean(), (u > 3) ^ True, (u > 3) & True),
            (torch.cat([a, u]), torch.stack([u, h]), torch.cat([u.float(), u]), torch.cat([h, u])),
            (u.to(torch.int8).to(torch.int16), h.to(torch.uint8).to(torch.int16), (a > 0).to(h)),
        )

    check(function, SMALL, BYTES, SMALL.to(torch.int16))


def test_an_image_of_bytes_goes_through(core_built):
    check(nn.Sequential(), torch.arange(192, dtype=torch.uint8).reshape(1, 3, 8, 8))


def test_doubles_are_computed_in_f32_with_a_warning(core_built):
    module = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.LayerNorm(5)).double()
    with pytest.warns(UserWarning, match="float64 is computed in float32"):
        check(module.requires_grad_(False), X.double())


def test_integers_that_are_returned_as_f64_are_exact(core_built):
    large = torch.tensor([2**40 + 1, 2**53 + 1, 16777217])
    check(
        lambda x: (x.double(), (x + 1).double().view(3, 1)[1:], x.int().double()),
        large,
        tolerance=0,
    )


def test_bits_are_viewed_as_numbers_of_another_type(core_built):
    x = torch.tensor([[1.5, -0.0, float("inf"), 1e-40], [3e38, -2.5, float("nan"), 7.0]])
    integers = (torch.int32, torch.int16, torch.uint8, torch.int64)
    check(
        lambda x, n: (
            tuple(x.view(kind) for kind in integers),
            x[0].bfloat16().view(torch.int16),
            n.view(torch.int64).view(torch.float32),
            n[:, :2].contiguous().view(torch.bfloat16),
            # the root as a shift of the exponent: two of these ops one behind the other
            ((x.abs().view(torch.int32) >> 1) + 0x1FC00000).view(torch.float32) * 2,
        ),
        x,
        x.view(torch.int32).flip(0).contiguous(),
        tolerance=0,
    )
    with pytest.raises(streamtensor.Error, match="float16 cannot be viewed as"):
        streamtensor.compile(Call(lambda x: x.view(torch.int16)), (x.half(),))


def test_tensors_without_elements_or_dims(core_built):
    """A design has neither; constants and reshapes stand for them."""

    def function(x, none, number):
        return (
            (x[:0], none * 2, torch.cat([none, x, x[:0]]), x[:, :0] @ x[:0], x[:0].sum(1)),
            (none.sum(), x + none.sum(), none.mean(0), x[:0].prod(), none.any(), none.all(0)),
            (number.softmax(0), number.sort(), number.cumsum(0), number.logsumexp(-1)),
            (number.topk(1), number.max(0), number.prod(0), number.gather(0, torch.tensor(0))),
        )

    check(function, X, torch.empty(0, 6), torch.tensor(2.5))
    with pytest.raises(streamtensor.Error, match="the module computes no tensor"):
        streamtensor.compile(nn.Linear(6, 3), (torch.empty(0, 6),))


def test_constants_are_results(core_built):
    check(lambda x: (torch.tensor([1.0, 5.0, 2.0]), torch.arange(4), x + 1, torch.ones(2)), X)


def test_reductions_of_bools_are_read_back(core_built, tmp_path):
    model, stage = tmp_path / "model.mlir", tmp_path / "stage.mlir"
    model.write_text(streamtensor.export(Call(lambda x: (x > 0).all(1)), (X,)).text)
    made = stc("compile", model, "--platform", "u55c", "--stop-after", "fold_views", "-o", stage)
    assert made.returncode == 0 and "init = true" in stage.read_text()
    assert stc("check", stage).returncode == 0


def test_counts_beyond_the_least_length_are_told(core_built):
    numbers = torch.tensor([1, 2, 2, 0])
    with pytest.warns(UserWarning, match="numbers from 4 on are not counted"):
        check(lambda x: torch.bincount(x, minlength=4), numbers)


def test_what_is_no_tensor_is_taken_and_given(core_built):
    def function(x, mask, scale, options):
        found = x * scale if mask is None else x * mask
        return {"found": [found + options["shift"], None], "mode": options["mode"], "count": 3}

    check(function, X, None, 2.0, {"shift": torch.ones(6), "mode": "sum"})


def test_another_number_than_the_design_was_compiled_for_is_refused(core_built):
    with streamtensor.compile(Call(lambda x, scale: x * scale), (X, 2.0)) as design:
        with pytest.raises(streamtensor.Error, match="input 1 is 3.0, but .* compiled for 2.0"):
            design(X, 3.0)
        with pytest.raises(streamtensor.Error, match="input 0 is 1"):
            design(1, 2.0)
        same(design(X), X * 2)


def test_numbers_that_are_read_from_tensors(core_built):
    def function(x):
        total, most = x.sum().item(), x.max().item()
        place = (x.sum() < 9).long().item()
        torch._check(place >= 0)
        picked = x.select(0, place - 2), torch.arange(place, place + 3) * 2
        return x * total, x.clamp(max=x[0, 0].item()), torch.full((3,), most), most * 2 + 1, picked

    check(function, X)


def test_one_tensor_may_be_given_twice_and_a_parameter_too(core_built):
    state = torch.zeros(3)
    with streamtensor.compile(Call(lambda h, c: 2 * h + c), (state, state)) as design:
        assert design(torch.ones(3), torch.full((3,), 5.0)).tolist() == [7, 7, 7]
    module = nn.Linear(3, 3, bias=False).requires_grad_(False)
    with streamtensor.compile(module, module.weight) as design:
        same(design(torch.eye(3)), module(torch.eye(3)))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return self.norm(x) * self.calls


def test_written_buffers_are_kept_and_given_back(core_built):
    module = Counting().requires_grad_(False)
    with streamtensor.compile(module, X) as design:
        for number in range(1, 3):
            same(design(X * number), module(X * number))
            for name, value in design.buffers.items():
                torch.testing.assert_close(value, module.get_buffer(name))
    assert design.buffers["calls"] == 2 and "norm.running_var" in design.buffers


def test_written_inputs_are_written(core_built):
    """As a cache of keys whose caller keeps it."""

    def function(cache, new):
        cache[:, 1:2] = new
        return cache.sum(0)

    check(function, X, torch.ones(4, 1), times=2)


@pytest.mark.parametrize(
    "module, message",
    [
        (torch.jit.script(nn.Linear(2, 2)), "the module is TorchScript"),
        ("models/net.pt", "'models/net.pt' is a path, not a module"),
        (torch.relu, "is not a module"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_module_is_refused_in_one_sentence(module, message):
    with pytest.raises(streamtensor.Error, match=message):
        streamtensor.compile(module, X)


def test_literals_of_tensors_that_are_gone_stay_their_own():
    table = torch_lowering.kept_references()
    found = [table.track(torch.full((4,), float(number))) for number in range(50)]
    assert len({id(each) for each in found}) == 50


def test_a_process_survives_what_ends_torch_mlir(monkeypatch):
    monkeypatch.setattr(torch_lowering, "_run_passes", lambda _: os.kill(os.getpid(), 11))
    with pytest.raises(streamtensor.Error, match="torch-mlir fails on one of its operations"):
        streamtensor.export(nn.Linear(6, 2), X)


def test_an_interrupt_ends_the_lowering_at_once():
    def interrupted(*_):
        raise KeyboardInterrupt

    before, first = signal.signal(signal.SIGALRM, interrupted), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            torch_lowering._in_child(lambda: time.sleep(60))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - first < 30


def test_a_loop_whose_length_values_decide_is_refused():
    class Doubling(nn.Module):
        def forward(self, x):
            times = torch.zeros((), dtype=torch.int64)
            loop = torch._higher_order_ops.while_loop
            return loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (times, x))

    with pytest.raises(streamtensor.Error, match="torch.while_loop runs as often as its values"):
        streamtensor.compile(Doubling(), (torch.ones(4),))
