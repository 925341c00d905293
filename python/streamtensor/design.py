"""A compiled design, run on the CPU or an accelerator card through the runtime of libstreamtensor
(ctypes).
"""

import ctypes
import functools
import json
import os
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from . import core
from .call_form import Arguments, Results
from .errors import Error
from .graph import ELEMENTS, Port, Signature

_ERROR_SIZE = 4096
_API = {  # name: (result type, argument types)
    "stc_design_open": (
        ctypes.c_int,
        [
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_char_p,
            ctypes.c_size_t,
        ],
    ),
    "stc_design_phase": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "stc_design_input": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "stc_design_launch": (ctypes.c_int, [ctypes.c_void_p]),
    "stc_design_tokens": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "stc_design_tokens_most": (ctypes.c_longlong, [ctypes.c_void_p]),
    "stc_design_output": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "stc_design_times": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)],
    ),
    "stc_design_reset": (ctypes.c_int, [ctypes.c_void_p]),
    "stc_design_error": (ctypes.c_char_p, [ctypes.c_void_p]),
    "stc_design_close": (None, [ctypes.c_void_p]),
}


_LONG = ("launch", "tokens")


def _direct(function, *arguments):
    return function(*arguments)


def _interruptible(function, *arguments):
    """function(*arguments) in a thread of its own, since Python heeds signals between its own
    instructions only.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    found = []
    worker = threading.Thread(target=lambda: found.append(function(*arguments)), daemon=True)
    worker.start()
    worker.join()
    return found[0]


@functools.cache
def _library():
    library = ctypes.CDLL(str(core.find_file(core.LIBRARY)))
    for name, (result, arguments) in _API.items():
        function = getattr(library, name, None)
        if function is None:
            raise Error(
                f"{core.find_file(core.LIBRARY)} has no {name}",
                "it is older than this package: build it again",
            )
        function.restype, function.argtypes = result, arguments
    return library


class Call(NamedTuple):
    """How a module is called that became a design."""

    arguments: Arguments
    results: Results
    # inputs and buffers that the module writes: the result that holds the new value
    written: dict[str, str]


def _one_at_a_time(method):
    """The method as one step for all threads that use this design."""

    @functools.wraps(method)
    def locked(self, *arguments, **options):
        with self._lock:
            return method(self, *arguments, **options)

    return locked


class Design:
    """design(*inputs) runs one launch; states (a KV cache) persist in the design between
    launches.

    Threads may share a design: a call (inputs, launch, results) is one step, and others wait for
    its end. Who calls write, launch and read separately keeps other threads out by `with
    design.lock():`. Designs are independent of each other.
    """

    def __init__(
        self,
        folder,
        inputs: list[Signature],
        results: list[Signature],
        device: str = "cpu",
        keep: tempfile.TemporaryDirectory | None = None,
        phases: dict[str, tuple[list[Signature], list[Signature]]] | None = None,
        call: Call | None = None,
    ):
        """inputs, results: the signature without weights. keep: removed when the design is closed.

        phases: inputs and results of each phase of a design with several; `inputs` and `results`
        are those of the first. call: None for tensors in, tensors out.
        """
        self._module_call = call
        self._lock, self._owner = threading.RLock(), os.getpid()
        # the buffers that the module writes, as the last launch left them
        self.buffers: dict[str, torch.Tensor] = {}
        self.folder, self._temporary_folder, self._phases = Path(folder), keep, phases or {}
        self._states: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
        self._lead_rows: dict[str, int] = {}
        self._continuable_inputs: set[str] = set()
        self._read_manifest()
        self._set_signature(inputs, results)
        self._handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(_ERROR_SIZE)
        status = _interruptible(
            _library().stc_design_open,
            str(self.folder).encode(),
            device.encode(),
            None,
            ctypes.byref(self._handle),
            text,
            _ERROR_SIZE,
        )
        if status:
            raise Error(
                f"{self.folder}: the design cannot be opened: {text.value.decode(errors='replace')}"
            )

    def lock(self):
        """A context in which no other thread uses the design."""
        return self._lock

    @_one_at_a_time
    def __call__(self, *inputs):
        """Runs the module: takes and gives what it does. Tensors into which it writes are
        written.
        """
        call = self._module_call
        names = [
            name
            for name, signature in self._inputs.items()
            if signature.port.role == "input" and name not in self.buffers
        ]
        flat = call.arguments.tensors(inputs) if call else torch.utils._pytree.tree_leaves(inputs)
        if len(flat) != len(names):
            raise Error(
                f"{len(flat)} inputs for a design that takes {len(names)}: {', '.join(names)}"
            )
        arguments = {**dict(zip(names, flat)), **self.buffers}
        for name, value in arguments.items():
            if name in self._inputs:
                self.write(name, value)
        self.launch()
        results = [
            self.read(name)
            for name, signature in self._results.items()
            if signature.port.role == "output"
        ]
        if call is None:
            return results[0] if len(results) == 1 else tuple(results)
        with torch.no_grad():
            for name, value in zip(call.written, results[call.results.tensors :]):
                arguments[name].copy_(value)
        return call.results.filled(results)

    @_one_at_a_time
    def write(self, name: str, value: torch.Tensor) -> None:
        """Sets an input, or a whole state."""
        signature = self._signature(name)
        if tuple(value.shape) != signature.shape or value.dtype != signature.dtype:
            raise Error(
                f"'{name}' is {tuple(value.shape)} of {value.dtype}",
                f"the design takes {signature.shape} of {signature.dtype}",
            )
        if value.is_meta or value.layout != torch.strided:
            kind = "on the meta device" if value.is_meta else f"of layout {value.layout}"
            raise Error(f"'{name}' is {kind}", "accepted are tensors that hold all their numbers")
        value = value.detach().cpu().to(signature.stored).contiguous()
        self._call("input", name.encode(), value.data_ptr(), value.numel() * value.element_size())

    @_one_at_a_time
    def read(self, name: str) -> torch.Tensor:
        """A result of the last launch, or a whole state."""
        signature = self._signature(name)
        value = torch.empty(signature.shape, dtype=signature.stored)
        self._call("output", name.encode(), value.data_ptr(), value.numel() * value.element_size())
        return value.to(signature.dtype)

    @_one_at_a_time
    def select_phase(self, phase: str) -> None:
        """Selects the phase of the next calls. All phases share states and weights."""
        if phase not in self._phases:
            raise Error(
                f"the design has no phase '{phase}'",
                f"it has {', '.join(self._phases) or 'one, without a name'}",
            )
        self._call("phase", phase.encode())
        self._set_signature(*self._phases[phase])

    def _set_signature(self, inputs: list[Signature], results: list[Signature]) -> None:
        self._inputs = {signature.port.name: signature for signature in inputs}
        self._results = {signature.port.name: signature for signature in results}
        for name, (shape, dtype) in self._states.items():
            known = self._inputs.get(name, Signature(Port(name, "state"), shape, dtype, dtype))
            self._inputs[name] = replace(known, shape=shape, dtype=dtype, stored=dtype)

    def row(self, name: str, position: int) -> torch.Tensor:
        """The row of state `name` (1 x heads x rows x width) at `position`, as f32: heads x
        width.
        """
        at = position + self.lead_rows(name)
        value = self.read(name)[0, :, at].float()
        scale = f"{name}.scale"
        return value * self.read(scale)[0, :, at, None].float() if scale in self._inputs else value

    def lead_rows(self, name: str) -> int:
        """Number of rows of the state `name` in front of the first row of the cache."""
        return self._lead_rows.get(name, 0)

    def can_continue(self, name: str) -> bool:
        """Whether the token count `name` may be one more than there are tokens.

        That marks the launch as continued by another one: it updates states only and skips the
        results.
        """
        return name in self._continuable_inputs

    def launch(self) -> None:
        self._call("launch")

    @_one_at_a_time
    def launch_tokens(self, first: torch.Tensor, forced: torch.Tensor, steps: int) -> torch.Tensor:
        """Runs several steps in one launch: returns the tokens behind `first`, tokens x sequences.

        The input that is fed back is `first`, then the forced tokens, then the tokens that the
        design selects. With a dynamic token count, a step reads as many forced tokens as it has
        rows.
        """
        rows = first.numel() // forced.shape[1]
        behind = torch.cat(
            [forced, forced.new_zeros(max(steps - -(-len(forced) // rows), 0), forced.shape[1])]
        )
        text = torch.cat([first.reshape(-1), behind.reshape(-1)])
        self._call(
            "tokens", steps, 1 + len(forced), text.data_ptr(), text.numel() * text.element_size()
        )
        return text[first.numel() :].reshape(behind.shape)

    def tokens_most(self) -> int:
        """Maximum number of steps per launch of this phase; 1 for a phase without feedback."""
        return _library().stc_design_tokens_most(self._handle) if self._handle else 1

    def reset(self) -> None:
        """Zeroes the states."""
        self._call("reset")

    @_one_at_a_time
    def times(self) -> tuple[float, float]:
        """Seconds of the last launch: on the host (inputs and results), and waiting for the
        device.
        """
        host, device = ctypes.c_double(), ctypes.c_double()
        self._call("times", ctypes.byref(host), ctypes.byref(device))
        return host.value, device.value

    @_one_at_a_time
    def close(self) -> None:
        if self._handle:
            _library().stc_design_close(self._handle)
            self._handle = ctypes.c_void_p()
        if (
            self._temporary_folder and self._owner == os.getpid()
        ):  # not a fork's: it is the parent's
            self._temporary_folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read_manifest(self) -> None:
        """Reads the types of states as the compiler stores them (with scales); equal in all
        phases.
        """
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_text()) if path.is_file() else {"inputs": [], "outputs": []}
        first = manifest.get("phases", [manifest])[0]
        self._states = {
            item["name"]: (tuple(item["shape"]), ELEMENTS[item["dtype"]])
            for item in first["inputs"]
            if item["role"] == "state"
        }
        self._lead_rows = {
            item["name"]: item["lead"] for item in first["outputs"] if "lead" in item
        }
        self._continuable_inputs = {
            item["token_count"] for item in first["inputs"] if item.get("more_chunks")
        }

    def _signature(self, name: str) -> Signature:
        """The signature of an input or result. A state has that of its argument: its result is only
        the new rows.
        """
        signature = self._inputs.get(name) or self._results.get(name)
        if signature is None:
            raise Error(
                f"the design has no '{name}'",
                f"it has {', '.join({**self._inputs, **self._results})}",
            )
        return signature

    @_one_at_a_time
    def _call(self, name: str, *arguments) -> None:
        if not self._handle:
            raise Error(f"{self.folder}: the design is closed")
        function = getattr(_library(), f"stc_design_{name}")
        try:
            status = (_interruptible if name in _LONG else _direct)(
                function, self._handle, *arguments
            )
        except BaseException:
            self._handle = ctypes.c_void_p()  # the launch may go on: nothing of it is freed
            raise
        if status:
            text = _library().stc_design_error(self._handle) or b"no reason given"
            raise Error(f"{self.folder}: {text.decode(errors='replace')}")
