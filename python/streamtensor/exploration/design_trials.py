"""Explores designs with Optuna: Optuna proposes trials, each trial is one `stc compile`, and
workers are processes on this machine or of a Dask cluster.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from .. import core
from .. import options as compiler_options
from ..errors import Error
from ..work_folder import WorkFolder

OBJECTIVES = ("ms", "DSP", "on-chip bytes", "mJ")  # all are minimized
OBJECTIVES_OF_C = ("ms", "DSP", "LUT", "BRAM18")
# what matters to a C function; the other choices are those of language models
SPACE_OF_C = (
    "parallelism-search",
    "kernel-dsp",
    "kernel-lut",
    "kernel-lanes",
    "operand-ports",
    "reserved-ports",
    "register-tiles",
    "on-chip-memory",
    "fifo-sizing",
    "clock",
)
# published heuristics, which are points of the space: their names, and what they set
HEURISTICS = {
    name: {"parallelism-search": search, "register-tiles": "none"}
    for name, search in {
        "by intensity (HIDA)": "intensity",
        "nearest neighbours (ScaleHLS)": "neighbor",
        "the same for all kernels (StreamTensor)": "uniform",
    }.items()
}
STORAGE, REPORT = "trials.log", "report.html"
ATTEMPTS = 3  # for a trial whose worker dies


class WorkerDied(Exception):
    """The worker of a trial ended without a result."""


@dataclass
class Task:
    """What all trials of an exploration have in common; sent to the workers."""

    text: str  # MLIR
    platform: str
    quant: str | None
    constraints: list[str] = field(default_factory=list)

    fixed: tuple[str, ...] = ()  # the parameters that the constraints set: no trial varies them
    source: str | None = None  # the C file that `text` is; None: it is MLIR

    @property
    def objectives(self) -> tuple[str, ...]:
        return OBJECTIVES_OF_C if self.source else OBJECTIVES

    def identity(self) -> dict[str, str]:
        return {
            "model": hashlib.blake2b(self.text.encode(), digest_size=32).hexdigest(),
            "platform": self.platform,
            "quant": self.quant or "none",
            "constraints": " ".join(self.constraints),
        }


def task(
    text: str, settings: compiler_options.Settings, quant: str | None, source: Path | None = None
) -> Task:
    """What all trials of a module with these settings have in common. source: the C file that the
    text is of; its folder and those of the options hold its headers.
    """
    if source:
        folders = [source.resolve().parent, *map(Path, settings.get("include", []))]
        settings = {**settings, "include": [str(folder.resolve()) for folder in folders]}
    platform = compiler_options.value(settings, "platform", "explore")
    file = Path(platform)  # an absolute path, which is valid for workers in other folders too
    constraints = {name: values for name, values in settings.items() if name != "platform"}
    return Task(
        text,
        str(file.resolve()) if file.is_file() else platform,
        quant,
        compiler_options.words(constraints, "explore"),
        tuple(constraints),
        source and source.name,
    )


def run_compiler(task: Task, work: str, *words) -> subprocess.CompletedProcess:
    text = Path(work) / (task.source or "model.mlir")
    text.write_text(task.text)
    command = [
        core.find_file(core.COMPILER),
        "compile",
        text,
        "--platform",
        task.platform,
        *task.constraints,
        *(["--quant", task.quant] if task.quant else []),
        *words,
    ]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def check_fixed_kernels(task: Task) -> None:
    """Raises if `--fix-kernel` names an unknown kernel or an impossible parallelism, which every
    trial would.
    """
    if "--fix-kernel" not in task.constraints:
        return
    with WorkFolder() as work:
        done = run_compiler(
            task, work, "--stop-after", "form_streams", "-o", Path(work) / "streams.mlir"
        )
    if done.returncode:
        raise core.CompileError(done.stderr.replace(f"{work}/", ""))


def evaluate(task: Task, point: dict) -> dict:
    """One trial: its figures, or why there is no design. Raises WorkerDied if the compiler was
    killed.
    """
    with WorkFolder() as work:
        design = Path(work) / "design"
        done = run_compiler(
            task,
            work,
            "-o",
            design,
            *(word for name, value in point.items() for word in (f"--{name}", value)),
        )
        if done.returncode < 0:
            raise WorkerDied(f"the compiler was ended by signal {-done.returncode}")
        if done.returncode:
            return {
                "rejected": done.stderr.strip().splitlines()[0].removeprefix("stc: error: ")
                if done.stderr.strip()
                else f"exit status {done.returncode}"
            }
        report = json.loads((design / "report.json").read_text())
    figures = {
        "ms": report["latency_ms"],
        "DSP": report["resources"]["dsp"],
        "LUT": report["resources"]["lut"],
        "BRAM18": report["resources"]["bram18"],
        "on-chip bytes": report["fifos"]["bytes"] + report["converters"]["bytes"],
        "mJ": report["energy"]["launch_mj"],
    }
    found = {
        "values": [figures[name] for name in task.objectives],
        "cycles": report["cycles"]["model"],
        "simulated": report["cycles"].get("simulated"),
    }
    kept = {key: report[key] for key in ("loops", "baseline") if task.source and key in report}
    return {**found, **kept}


def search_space(platform: str, *limits: str) -> list[dict]:
    """The design parameters of the compiler within limits: [{"name", "default", "candidates"}]."""
    space = core.run_json("search-space", "--platform", platform, *limits)
    for choice in space:  # the default is one of the candidates
        choice["candidates"] += [choice["default"]] * (
            choice["default"] not in choice["candidates"]
        )
    return space


def space(task: Task) -> list[dict]:
    """What the trials of a task may vary. No kernel may have more DSPs than the design."""
    words = task.constraints
    at = words.index("--max-dsp") if "--max-dsp" in words else len(words)
    return [
        each
        for each in search_space(task.platform, *words[at : at + 2])
        if each["name"] not in task.fixed and (not task.source or each["name"] in SPACE_OF_C)
    ]


# --- workers


def crew(workers: int | None, scheduler: str | None):
    """Those on this machine, as many as it has cores where it is not said; or a cluster's."""
    if workers is not None and scheduler:
        raise Error(
            "--workers and --scheduler contradict each other",
            "the cluster's own workers take the trials: accepted is one of them",
        )
    count = (os.cpu_count() or 1) if workers is None else workers
    if count < 1:
        raise Error("--workers counts from 1")
    return DaskWorkers(scheduler) if scheduler else LocalWorkers(count)


class LocalWorkers:
    """Trials in parallel on this machine, each a compiler process."""

    def __init__(self, workers: int):
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers)

    def submit(self, task: Task, point: dict):
        return self._pool.submit(evaluate, task, point)

    def next_done(self, pending: list) -> object:
        return next(iter(wait(pending, return_when=FIRST_COMPLETED).done))

    def close(self):
        self._pool.shutdown(cancel_futures=True)


class DaskWorkers:
    """Trials on the workers of a Dask cluster; the scheduler moves trials of a dead worker to
    another.
    """

    def __init__(self, address: str):
        distributed = import_optional("distributed")
        try:
            self._client = distributed.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise Error(
                f"no Dask scheduler answers at {address}: {error}",
                "`dask scheduler` prints its address, as tcp://HOST:8786",
            ) from None
        self._wait = distributed.wait
        if not self._client.scheduler_info()["workers"]:
            self._client.close()
            raise Error(
                f"the Dask scheduler at {address} has no workers",
                f"`dask worker {address}` starts one",
            )

    @property
    def workers(self) -> int:
        return max(
            1,
            sum(worker["nthreads"] for worker in self._client.scheduler_info()["workers"].values()),
        )

    def submit(self, task: Task, point: dict):
        return self._client.submit(evaluate, task, point, pure=False)

    def next_done(self, pending: list) -> object:
        return next(iter(self._wait(pending, return_when="FIRST_COMPLETED").done))

    def close(self):
        self._client.close()


def import_optional(name: str):
    """A package that only this command needs."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Error(f"{name} is not installed", "pip install 'streamtensor[explore]'") from None


# --- the study


def repair_journal(path: Path) -> None:
    """Raises if the file is not a journal; removes an incomplete last line.

    A run that was killed while writing leaves such a line, and the next record would continue it.
    """
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    for line in whole.splitlines():
        json.loads(line)["op_code"]
    if text and not whole:
        raise ValueError("its first line has no end")
    if whole != text:
        path.write_bytes(whole)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        accepted = "accepted is a folder, or a path at which there is nothing"
        raise Error(f"{folder} is no folder", accepted) from None


@contextlib.contextmanager
def sole_use(folder: Path):
    """While active, no other exploration uses the folder; rejects one that another uses."""
    _make(folder)
    with (folder / ".in_use").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink == 0:  # its user ended just now and removed it
                raise BlockingIOError
        except OSError:
            file.seek(0)
            raise Error(
                f"{folder} is in use by another exploration, process {file.read().strip() or '?'}",
                "wait for its end, or choose another folder",
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            (folder / ".in_use").unlink(missing_ok=True)


def open_study(folder: Path, task: Task, resume: bool):
    """The study in `folder`; rejects one of another model, platform, scheme or constraint."""
    optuna = import_optional("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    from .journal_lock import JournalLock

    there = (folder / STORAGE).exists()
    if there and not resume:
        raise Error(
            f"{folder} already contains an exploration",
            "--resume continues it; or choose another folder",
        )
    _make(folder)
    try:
        if there:
            repair_journal(folder / STORAGE)
        journal = (
            folder / STORAGE
        ).resolve()  # absolute, because the lock is a symbolic link to it
        storage = JournalStorage(JournalFileBackend(str(journal), JournalLock(journal)))
        study = optuna.create_study(
            storage=storage,
            study_name="designs",
            directions=["minimize"] * len(task.objectives),
            sampler=optuna.samplers.NSGAIISampler(population_size=16, seed=0),
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise Error(
            f"{folder / STORAGE} is not the study of an exploration: {error}",
            "a folder that `streamtensor explore` wrote",
        ) from None
    for key, value in task.identity().items():
        if study.user_attrs.get(key, value) != value:
            raise Error(
                f"{folder / STORAGE} is of another exploration: its {key.removesuffix('s')} "
                f"is '{study.user_attrs[key]}', not '{value}'",
                "the same input and options as before; or another folder",
            )
        study.set_user_attr(key, value)
    study.set_user_attr("source", task.source)
    return study


def objectives_of(study) -> tuple[str, ...]:
    return OBJECTIVES_OF_C if study.user_attrs.get("source") else OBJECTIVES


def finished(study) -> list:
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state.name in ("COMPLETE", "PRUNED")
    ]


def requeue_interrupted(study, space: list[dict]) -> None:
    """Requeues unfinished trials of an interrupted run; a new study begins with the default
    settings, of C with the published heuristics behind them.
    """
    import optuna

    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params, skip_if_exists=True)
    if not study.get_trials(deepcopy=False):
        defaults = {choice["name"]: choice["default"] for choice in space}
        study.enqueue_trial(defaults)
        if study.user_attrs.get("source") and "parallelism-search" in defaults:
            for heuristic in HEURISTICS.values():
                study.enqueue_trial(
                    {name: heuristic.get(name, value) for name, value in defaults.items()}
                )


def explore(
    study, task: Task, space: list[dict], workers, trials: int, done: Callable[[int], None]
) -> None:
    """Runs until `trials` are finished; calls `done` after each. A trial whose worker dies is
    retried on another.
    """
    from optuna.trial import TrialState

    requeue_interrupted(study, space)
    pending, count = {}, len(finished(study))
    try:
        while count < trials:
            while len(pending) < workers.workers and count + len(pending) < trials:
                trial = study.ask()
                values = [
                    (choice, trial.suggest_categorical(choice["name"], choice["candidates"]))
                    for choice in space
                ]
                # Defaults are not passed: the compiler then also compares searches, and lowers the
                # clock if a die is congested.
                point = {
                    choice["name"]: value for choice, value in values if value != choice["default"]
                }
                pending[workers.submit(task, point)] = (trial, point, 1)
            future = workers.next_done(list(pending))
            trial, point, attempt = pending.pop(future)
            try:
                found = future.result()
            except Exception as error:
                if attempt == ATTEMPTS or not is_worker_death(error):
                    raise Error(
                        f"a worker failed {attempt} times on {point}: {error}",
                        "finished trials are stored; --resume continues",
                    ) from None
                pending[workers.submit(task, point)] = (trial, point, attempt + 1)
                trial.set_user_attr("died", attempt)
                continue
            for key, value in found.items():
                if key != "values":
                    trial.set_user_attr(key, value)
            if "values" in found:
                study.tell(trial, found["values"])
            else:
                study.tell(trial, state=TrialState.PRUNED)
            count += 1
            done(count)
    finally:
        for future in pending:
            future.cancel()


def run(task: Task, folder: Path, resume: bool, trials: int, workers, watch):
    """The study in `folder`, with so many trials and its page. watch: makes, of the study, what is
    called after each trial.
    """
    from . import explore_report

    check_fixed_kernels(task)
    with sole_use(folder):
        study = open_study(folder, task, resume)
        try:
            explore(study, task, space(task), workers, trials, watch(study))
        finally:
            (folder / REPORT).write_text(explore_report.page(study))
    return study


def is_worker_death(error: Exception) -> bool:
    return isinstance(error, WorkerDied) or type(error).__name__ in (
        "KilledWorker",
        "CommClosedError",
        "CancelledError",
        "FutureCancelledError",
    )


def pareto_front(study) -> list:
    """The Pareto-optimal trials, the fastest first."""
    return sorted(study.best_trials, key=lambda trial: trial.values)


def no_design_reason(study) -> str:
    """Constraints may be infeasible: the first trial's message says by how much."""
    trials = finished(study)
    return (
        f"none of {len(trials)} trials gives a design; the one with default settings fails with: "
        f"{trials[0].user_attrs['rejected']}"
    )


def importance(study) -> dict[str, float]:
    """Importance of each parameter for the time; {} if there are too few trials."""
    import warnings

    import optuna

    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    if len(complete) < 8 or len({trial.values[0] for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return dict(
            optuna.importance.get_param_importances(
                study, evaluator=evaluator, target=lambda trial: trial.values[0]
            )
        )


def rows(study, most: int = 20) -> Iterator[list[str]]:
    """The Pareto front as text: one row per design."""
    for trial in pareto_front(study)[:most]:
        own = trial.user_attrs
        simulated = own.get("simulated")
        model_error = f"{100 * (own['cycles'] / simulated - 1):+.1f} %" if simulated else "-"
        yield [
            str(trial.number),
            *(f"{value:.6g}" for value in trial.values),
            str(own["cycles"]),
            str(simulated or "-"),
            model_error,
            " ".join(f"{name}={value}" for name, value in trial.params.items()),
        ]


def headings(study) -> tuple[str, ...]:
    return ("id", *objectives_of(study), "modeled", "simulated", "model error", "parameters")


class LiveTable:
    """The Pareto front as a live table if standard error is a terminal; else one line per trial."""

    def __init__(self, study, trials: int, stream):
        self._study, self._trials, self._stream, self._live, self._begun = (
            study,
            trials,
            stream,
            None,
            time.monotonic(),
        )

    def __enter__(self):
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_):
        if self._live:
            self._live.stop()

    def done(self, count: int) -> None:
        best = pareto_front(self._study)
        title = (
            f"{count} of {self._trials} trials, {time.monotonic() - self._begun:.0f} s, "
            f"{len(best)} Pareto-optimal"
        )
        if not self._live:
            print(
                f"streamtensor: {title}"
                + (f", the quickest {best[0].values[0]:.4g} ms" if best else ""),
                file=self._stream,
                flush=True,
            )
            return
        from rich.table import Table

        table = Table(title=title)
        for heading in headings(self._study):
            table.add_column(heading)
        for row in rows(self._study):
            table.add_row(*row)
        self._live.update(table, refresh=True)
