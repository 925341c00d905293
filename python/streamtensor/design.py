"""A compiled design, run on the CPU or an accelerator card through the runtime of libstreamtensor
(ctypes).
"""

import contextlib
import ctypes
import functools
import html
import os
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from . import core, folder_file, saved_call
from . import options as compiler_options
from .errors import Error
from .lowering.graph import ELEMENTS, Port, Signature
from .report import Report, frame, html_table, shown
from .saved_call import Call
from .work_folder import WorkFolder

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
    "stc_design_prepare": (ctypes.c_int, [ctypes.c_void_p]),
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


_LONG = ("prepare", "launch", "tokens")
CPU, CPU_ONCE = "cpu", "cpu-once"  # the second one is compiled sooner, for few launches
QUICK_SECONDS = 0.05  # how long a signal may wait


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


def _one_at_a_time(method):
    """The method as one step for all threads that use this design."""

    @functools.wraps(method)
    def locked(self, *arguments, **options):
        with self._lock:
            return method(self, *arguments, **options)

    return locked


def _shape_text(signature: Signature) -> str:
    kind = str(signature.dtype).removeprefix("torch.")
    extents = "x".join(map(str, signature.shape)) or "one"
    return f"{signature.port.name}: {extents} {kind}"


def _as_tensor(value):
    """Arrays of NumPy as tensors."""
    return torch.as_tensor(value) if hasattr(value, "__array_interface__") else value


def _as_input(value, signature: Signature):
    """What torch.as_tensor takes, in the type of the input where that loses nothing."""
    try:
        found = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return value
    with contextlib.suppress(RuntimeError):  # complex numbers have no other type
        made = found.to(signature.dtype)
        if made.to(found.dtype).equal(found):
            return made
    return found


def _about_batch(value: torch.Tensor, signature: Signature) -> list[str]:
    """What to do with a batch of another size than that of the example."""
    if value.dtype != signature.dtype or value.dim() != len(signature.shape) or not value.dim():
        return []
    given, takes = value.shape[0], signature.shape[0]
    if tuple(value.shape[1:]) != signature.shape[1:]:
        return []
    if given > takes:
        does = f"call it with parts: x.split({takes})"
        does += "" if given % takes == 0 else ", the last one filled up"
    else:
        does = f"fill the batch up to {takes} and take the first {given} results"
    return [f"that is a batch of {given} for one of {takes}: {does}, or compile it for {given}"]


def load(folder) -> "Design":
    """The design in a folder that was compiled before, by this package or by `stc compile`."""
    if not isinstance(folder, (str, os.PathLike)):
        raise Error(f"{folder!r} is no folder", "accepted is the folder that `compile` wrote")
    folder = Path(folder)
    saved = saved_call.load(folder)
    if not saved.phases:
        raise Error(f"{folder}: the design has no phase", "compile it again")
    first = next(iter(saved.phases.values()))
    phases = saved.phases if len(saved.phases) > 1 else None
    design = Design(folder, *first, phases=phases, call=saved.call)
    design.buffers.update(saved.buffers)
    return design


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
        device: str = CPU,
        keep: WorkFolder | None = None,
        phases: dict[str, tuple[list[Signature], list[Signature]]] | None = None,
        call: Call | None = None,
    ):
        """inputs, results: the signature without weights. keep: removed when the design is closed.

        phases: inputs and results of each phase of a design with several; `inputs` and `results`
        are those of the first. call: None for tensors in, tensors out.
        """
        # compiles what the design was made of with other options; None: it is not known
        self._again: Callable[[dict, str], Design] | None = None
        self._module = None  # the module that compile() took
        self.is_quantized = False  # whether its activations are integers
        self._report: Report | None = None
        self._quick = False  # whether the last launch was
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

    @property
    def report(self) -> Report:
        """What report.json says, of the first phase."""
        if self._report is None:
            self._report = Report.read(self.folder)
        return self._report

    def __repr__(self) -> str:
        sides = (self._inputs.values(), self._results.values())
        takes, gives = (
            ", ".join(_shape_text(each) for each in side if each.port.role != "weight")
            for side in sides
        )
        try:
            report = self.report
        except Error as error:
            return f"Design({takes}) -> {gives}\n{error.message}"
        return (
            f"Design {report.name} on {report.platform}: ({takes}) -> {gives}\n"
            f"{report.speed}; {report.size}\n"
            f"bottleneck: {report.bottleneck}; in {self.folder}"
        )

    def _repr_html_(self) -> str:
        """The same for notebooks, with a table of the kernels that wait longest."""
        told = "<br>".join(html.escape(line) for line in repr(self).splitlines())
        try:
            kernels = self.report.rows()[:8]
        except Error:  # as told
            return f"<p>{told}</p>"
        names = ["name", "layer", "busy_cycles", "stall_cycles", "lanes", "dsps"]
        rows = ([shown(row[name]) for name in names] for row in kernels)
        return f"<p>{told}</p>{html_table(names, rows)}"

    def table(self):
        """The kernels, those that wait longest first: a pandas.DataFrame, or a list of dictionaries
        where pandas is not installed.
        """
        return frame(self.report.rows())

    def show(self) -> Path:
        """Opens the report's page in a browser, if there is one; returns its file."""
        page = self.folder / "report.html"
        if not page.is_file():
            raise Error(f"{page}: there is no such file", "compile the design again")
        webbrowser.open(page.absolute().as_uri())
        return page

    def simulate(self, **given) -> dict:
        """What `stc simulate --json` says, with its options, as launches=4,
        channel_depth={"c3": 64}. An input that counts is an extent: positions=511.
        """
        known = compiler_options.table("simulate")
        extents = {
            name: value
            for name, value in given.items()
            if name in self._inputs and name.replace("_", "-") not in known
        }
        rest = {name: value for name, value in given.items() if name not in extents}
        if extents:
            rest["extent"] = {**extents, **rest.get("extent", {})}
        if not (self.folder / "design.mlir").is_file():
            raise Error(
                f"{self.folder}: the design was moved or deleted",
                "accepted is a design folder; compile it again",
            )
        found = compiler_options.settings(rest, "simulate", list(self._inputs))
        words = compiler_options.words(found, "simulate")
        return core.run_json("simulate", str(self.folder), *words)

    def set(self, **options) -> "Design":
        """A new design of the same module with other options, as clock=250."""
        if self._again is None:
            raise Error(
                f"{self.folder}: what the design was made of is not known here",
                "accepted is a design that compile() returned; else compile(…) it again",
            )
        return self._again(options, CPU)

    def compare(self, *inputs, reference=None):
        """Layer by layer, how far the design's numbers are from PyTorch's: a
        `streamtensor.compare.Comparison`. reference: another module to compare with.
        """
        from . import compare

        if self._again is None:
            raise Error(
                f"{self.folder}: the module that the design was made of is not known here",
                "accepted is a design that compile() returned",
            )
        return compare.compare(self._module, inputs, self, self._again, reference)

    def _in_folder(self, folder: Path) -> "Design":
        """A design with this one's signature and buffers in another folder, for few launches."""
        inputs, results = list(self._inputs.values()), list(self._results.values())
        design = Design(folder, inputs, results, CPU_ONCE, None, self._phases, self._module_call)
        design.buffers.update({name: value.clone() for name, value in self.buffers.items()})
        return design

    def __reduce__(self):
        if self._temporary_folder:
            raise Error(
                "a design in a temporary folder cannot be pickled: the folder goes with it",
                "compile(…, output=FOLDER) keeps it",
            )
        return load, (str(self.folder.absolute()),)

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
        if len(inputs) == len(names) and (call is None or call.arguments.are_tensors):
            inputs = tuple(
                each if isinstance(each, torch.Tensor) else _as_input(each, self._inputs[name])
                for name, each in zip(names, inputs)
            )
        inputs = torch.utils._pytree.tree_map(_as_tensor, inputs)
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
        if not isinstance(value, torch.Tensor):
            value = _as_input(value, signature)
        if not isinstance(value, torch.Tensor):
            raise Error(f"'{name}' is {value!r}"[:200], "accepted is what torch.as_tensor takes")
        if tuple(value.shape) != signature.shape or value.dtype != signature.dtype:
            raise Error(
                f"'{name}' is {tuple(value.shape)} of {value.dtype}",
                f"the design takes {signature.shape} of {signature.dtype}",
                *_about_batch(value, signature),
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

    def prepare(self) -> None:
        """Compiles the design for the CPU, which the first launch does otherwise."""
        self._call("prepare")

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
        if path.is_file():
            with folder_file.reading(path):
                manifest = folder_file.read(path)
                self._take_states(manifest.get("phases", [manifest])[0])

    def _take_states(self, first: dict) -> None:
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
        # launches like the last one, which was quick, need no thread of their own
        run = _interruptible if name in _LONG and not self._quick else _direct
        begun = time.perf_counter()
        try:
            status = run(function, self._handle, *arguments)
        except BaseException:
            self._handle = ctypes.c_void_p()  # the launch may go on: nothing of it is freed
            raise
        if name in _LONG:
            self._quick = time.perf_counter() - begun < QUICK_SECONDS
        if status:
            text = _library().stc_design_error(self._handle) or b"no reason given"
            raise Error(f"{self.folder}: {text.decode(errors='replace')}")
