"""Explores the designs of a module from Python: the same trials in the same state as those of
`streamtensor explore`, as a data frame, and the designs that are worth building.
"""

import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import api
from .. import options as compiler_options
from ..design import Design
from ..errors import Error
from ..quantization import static_quantization
from ..report import frame
from ..work_folder import WorkFolder
from . import design_trials

# what can be minimized: the figures of a trial, in the order of its values
FIGURES = ("latency_ms", "dsps", "on_chip_bytes", "launch_mj")
MODEL = "model.mlir"  # in the storage: what `streamtensor explore` continues with


@dataclass(frozen=True)
class Trial:
    """A design that was tried."""

    number: int
    figures: dict[str, float]  # {} where there is no design
    cycles: int | None  # modelled
    simulated_cycles: int | None
    options: dict[str, int | str]  # those that differ from the compiler's defaults
    rejected: str | None  # why there is no design
    _build: Callable[..., Design]

    def compile(self, output=None, **options) -> Design:
        """The design of this trial, with weights. output, options: as `streamtensor.compile` takes
        them.
        """
        return self._build(output=output, **{**self.options, **options})

    def row(self) -> dict:
        return {
            "trial": self.number,
            **{name: self.figures.get(name) for name in FIGURES},
            "cycles": self.cycles,
            "simulated_cycles": self.simulated_cycles,
            "rejected": self.rejected,
            **self.options,
        }


@dataclass(frozen=True)
class Exploration:
    """All trials that a storage holds. `report`: its page, where the storage is kept."""

    trials: tuple[Trial, ...]
    objectives: tuple[str, ...]
    storage: Path | None  # None: it was a temporary one

    @property
    def front(self) -> tuple[Trial, ...]:
        """The designs that no other one beats in all objectives, the best in the first objective
        first.
        """
        found = [trial for trial in self.trials if trial.figures]
        points = {trial.number: self._point(trial) for trial in found}
        kept = [trial for trial in found if not _is_beaten(points[trial.number], points.values())]
        return tuple(sorted(kept, key=lambda trial: (points[trial.number], trial.number)))

    @property
    def best(self) -> Trial:
        """The best design in the first objective; of equal ones in the next."""
        return self.front[0]

    @property
    def report(self) -> Path | None:
        return self.storage and self.storage / design_trials.REPORT

    def table(self):
        """A row for each trial: a pandas.DataFrame, or a list of dictionaries where pandas is not
        installed. Times are in ms, energies in mJ a launch; cycles are modelled.
        """
        front = {trial.number for trial in self.front}
        rows = [{**trial.row(), "pareto_optimal": trial.number in front} for trial in self.trials]
        return frame(rows)

    def __repr__(self) -> str:
        lines = [f"Exploration of {len(self.trials)} trials, {len(self.front)} Pareto-optimal"]
        lines += [_line(trial) for trial in self.front[:8]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _point(self, trial: Trial) -> tuple[float, ...]:
        return tuple(trial.figures[name] for name in self.objectives)


def _line(trial: Trial) -> str:
    figures = ", ".join(f"{name} {value:.6g}" for name, value in trial.figures.items())
    options = " ".join(f"{name}={value}" for name, value in trial.options.items())
    return f"{trial.number}: {figures}; {options or 'defaults'}"


def _is_beaten(point: tuple[float, ...], others) -> bool:
    return any(other != point and all(a <= b for a, b in zip(other, point)) for other in others)


def explore(
    module,
    example_inputs=None,
    platform: str | None = None,
    objectives: Sequence[str] = FIGURES[:2],
    budget: int | None = None,
    storage=None,
    names=None,
    quant: str | Mapping[str, str] | None = None,
    calibration=None,
    shapes: dict | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    on_trial: Callable[[int], None] | None = None,
    **options,
) -> Exploration:
    """Tries designs of `module(*example_inputs)` until the storage holds `budget` trials.

    objectives: of latency_ms, dsps, on_chip_bytes and launch_mj, all minimized, those by which
    designs are compared. budget: how many trials, those of the storage included. storage: a
    folder that keeps the trials, which this function and `streamtensor explore --resume` continue;
    None for a temporary one. workers: designs compiled at once on this machine (default: a core
    each); scheduler: the address of a Dask cluster instead. on_trial: called with the number of
    finished trials. The others are as `compile` takes them; options hold for all trials, as
    clock=250, max_dsp="50%".
    """
    _check_objectives(objectives)
    quant = compiler_options.scheme_text(quant)
    if "trials" in options:
        raise compiler_options.unknown("trials", "explore", ["budget"], "its documentation")
    given = compiler_options.settings(
        {"platform": platform, "trials": budget, **options}, "explore", ["objectives", "budget"]
    )
    given.pop("resume", None)
    compiler_options.check(compiler_options.with_platform(given), "explore")
    trials = compiler_options.count(given, "trials", "explore")
    given.pop("trials", None)
    compiler_options.refuse_those_of_c(given, "a module")
    made = api._opened(module, example_inputs, names, shapes)
    lowered_module, scheme = static_quantization.applied(
        made.module, made.inputs, quant, calibration
    )
    lowered, _ = api.lower(lowered_module, made.inputs, made.names, results=made.results)
    task = design_trials.task(lowered.text, given, scheme)
    crew = design_trials.crew(workers, scheduler)

    of_designs = compiler_options.table("compile")
    kept = {name: each for name, each in options.items() if name.replace("_", "-") in of_designs}

    def build(output, **chosen) -> Design:
        return api.compile(
            module, example_inputs, platform, output, names, quant, calibration, shapes,
            **{**kept, **{name.replace("-", "_"): each for name, each in chosen.items()}},
        )  # fmt: skip

    with _folder(storage) as folder, contextlib.closing(crew):
        study = design_trials.run(
            task, folder, True, trials, crew, lambda _: on_trial or (lambda count: None)
        )
        if storage is not None:
            (folder / MODEL).write_text(lowered.text)
        usual = {choice["name"]: choice["default"] for choice in design_trials.space(task)}
        found = [_trial(each, usual, build) for each in design_trials.finished(study)]
        if not design_trials.pareto_front(study):
            raise Error(design_trials.no_design_reason(study), "other limits, another storage")
    return Exploration(tuple(found), tuple(objectives), None if storage is None else Path(storage))


def _check_objectives(objectives: Sequence[str]) -> None:
    strange = [name for name in objectives if name not in FIGURES]
    if isinstance(objectives, str) or strange or not objectives:
        what = repr(objectives) if isinstance(objectives, str) or not objectives else strange[0]
        raise Error(f"objectives: {what}", f"accepted is a list of {', '.join(FIGURES)}")


@contextlib.contextmanager
def _folder(storage):
    if storage is not None:
        yield Path(storage)
        return
    with WorkFolder() as work:
        yield Path(work)


def _trial(found, usual: dict, build) -> Trial:
    options = {name: each for name, each in found.params.items() if each != usual.get(name)}
    own = found.user_attrs
    return Trial(
        found.number,
        dict(zip(FIGURES, found.values or ())),
        own.get("cycles"),
        own.get("simulated"),
        options,
        own.get("rejected"),
        build,
    )
