"""ONNX's LSTM, GRU and RNN as PyTorch's, whose gates stand in another order."""

import torch

from .node import Node, operator

_ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # PyTorch's gates in ONNX's order
_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@operator("LSTM")
def _lstm(node, x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None):
    if peepholes is not None:
        raise node.refuse("has peepholes", "none")
    if node.choice("input_forget", (0, 1), 0):
        raise node.refuse("has input_forget=1", "input_forget=0")
    form = _Form(node, x, w, lengths)
    states = [form.state(each) for each in (h, c)]
    made = torch.lstm(form.rows, states, form.weights(w, r, b), *form.options(b))
    return form.results(*made)


@operator("GRU")
def _gru(node, x, w, r, b=None, lengths=None, h=None):
    form = _Form(node, x, w, lengths)
    if not node.choice("linear_before_reset", (0, 1), 0):
        raise node.refuse(
            "has linear_before_reset=0", "linear_before_reset=1, as PyTorch exports it"
        )
    made = torch.gru(form.rows, form.state(h), form.weights(w, r, b), *form.options(b))
    return form.results(*made)


@operator("RNN")
def _rnn(node, x, w, r, b=None, lengths=None, h=None):
    form = _Form(node, x, w, lengths)
    run = torch.rnn_relu if form.relu else torch.rnn_tanh
    made = run(form.rows, form.state(h), form.weights(w, r, b), *form.options(b))
    return form.results(*made)


class _Form:
    """What these operators share: directions, activations, and the order of dims."""

    def __init__(self, node: Node, x, w, lengths):
        self._node, self._batch_first = node, node.choice("layout", (0, 1), 0)
        self.rows = x.transpose(0, 1) if self._batch_first else x
        self._count = w.shape[1] // len(_ORDERS[node.op])
        if node.integer("hidden_size", self._count) != self._count:
            raise node.refuse(f"has hidden_size={node.integer('hidden_size')}", str(self._count))
        choices = ("forward", "reverse", "bidirectional")
        self._direction = node.choice("direction", choices, "forward")
        self._both = 2 if self._direction == "bidirectional" else 1
        self.relu = self._check_activations()
        for name in ("activation_alpha", "activation_beta"):
            node.reals(name)  # of activations that are no choice here
        if node.has("clip"):
            raise node.refuse("has the attribute clip", "one without it")
        if lengths is not None:
            each = node.known_ints(4, "lengths")
            if any(length != self.rows.shape[0] for length in each):
                raise node.refuse(f"has lengths of {each}", f"{self.rows.shape[0]} for each")
        if self._direction == "reverse":
            self.rows = self.rows.flip(0)

    def _check_activations(self) -> bool:
        """Whether an RNN's is a ReLU."""
        usual = list(_ACTIVATIONS[self._node.op]) * self._both
        given = self._node.texts("activations", usual)
        relu = self._node.op == "RNN" and given == ["Relu"] * self._both
        if given != usual and not relu:
            raise self._node.refuse(f"has activations={given}", f"{usual}")
        return relu

    def state(self, given) -> torch.Tensor:
        if given is not None:
            return given.transpose(0, 1) if self._batch_first else given
        shape = self._both, self.rows.shape[1], self._count
        return torch.zeros(shape, dtype=self.rows.dtype)

    def options(self, bias) -> tuple:
        """As PyTorch's functions take them."""
        return bias is not None, 1, 0.0, False, self._both == 2, False

    def weights(self, w, r, b) -> list[torch.Tensor]:
        """Of each direction: of inputs, of states, and both biases."""
        found = []
        for at in range(self._both):
            found += [self._ordered(place, value, at) for place, value in ((1, w), (2, r))]
            if b is not None:
                half = b.shape[1] // 2
                found += [self._ordered(3, b, at, slice(i * half, half + i * half)) for i in (0, 1)]
        return found

    def _ordered(self, place: int, value, at: int, part=slice(None)) -> torch.Tensor:
        """The rows of a direction in PyTorch's order of gates."""

        def make(whole):
            gates = whole[at][part].chunk(len(_ORDERS[self._node.op]))
            return torch.cat([gates[each] for each in _ORDERS[self._node.op]])

        if place not in self._node.constants:
            return make(value)
        key = f"{'wrb'[place - 1]}{at}_{part.start or 0}"
        return self._node.derive(key, lambda: make(self._node.constants[place]))

    def results(self, rows, *states):
        """Rows of each direction, then the last states."""
        rows = rows.flip(0) if self._direction == "reverse" else rows
        rows = rows.unflatten(-1, (self._both, self._count))
        if self._batch_first:
            return rows.transpose(0, 1), *(each.transpose(0, 1) for each in states)
        return rows.transpose(1, 2), *states
