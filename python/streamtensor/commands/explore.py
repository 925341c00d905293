"""streamtensor explore: searches the design space with Optuna."""

import contextlib
import sys
from pathlib import Path

from .. import options as compiler_options
from ..errors import Error
from ..progress import Progress
from .arguments import add_output, new_command
from .checked_options import checked_platform, other_settings, read_text, scheme_of


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "Explore the design space with Optuna, on this machine or a Dask cluster.",
        run,
        "explore",
    )
    command.add_argument(
        "model",
        type=Path,
        metavar="FILE",
        help="MLIR module, as `streamtensor export` writes it, or a C file",
    )
    command.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="designs compiled in parallel on this machine (default: number of cores)",
    )
    command.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler, as tcp://HOST:8786; its workers need this package",
    )
    add_output(command, help="output folder: the study and report.html")


def run(options, progress: Progress) -> int:
    from ..exploration import design_trials

    platform = checked_platform(options, progress, "explore")
    constraints = other_settings(options)
    resume = bool(constraints.pop("resume", None))
    constraints.pop("trials", None)
    trials = compiler_options.count(options.settings, "trials", "explore")
    settings = {"platform": [platform], **constraints}
    source = options.model if options.model.suffix == ".c" else None
    if not source:
        compiler_options.refuse_those_of_c(settings, "MLIR")
    task = design_trials.task(read_text(options.model), settings, scheme_of(options), source)
    # before the study is opened, so that an error leaves the folder unchanged
    workers = design_trials.crew(options.workers, options.scheduler)
    with contextlib.ExitStack() as stack:
        stack.callback(workers.close)

        def watch(study):
            return stack.enter_context(design_trials.LiveTable(study, trials, sys.stderr)).done

        study = design_trials.run(task, options.output, resume, trials, workers, watch)
    if not design_trials.pareto_front(study):
        raise Error(design_trials.no_design_reason(study), "other limits, and another folder")
    for row in [design_trials.headings(study), *design_trials.rows(study)]:
        print("  ".join(row))
    return 0
