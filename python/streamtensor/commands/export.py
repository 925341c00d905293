"""streamtensor export: a model's step as MLIR, with its weights."""

from dataclasses import replace

from ..progress import Progress
from .arguments import add_batch, add_model, add_output, add_phase, new_command
from .language_model import load, note_tokens


def add(commands, name: str) -> None:
    command = new_command(commands, name, "Write a model's step as MLIR, with its weights.", run)
    add_model(command)
    add_phase(command)
    add_batch(command)
    command.add_argument(
        "--no-attributes",
        action="store_true",
        help="write plain MLIR without the names and roles of arguments and results",
    )
    add_output(command)


def run(options, progress: Progress) -> int:
    from .. import output_folder, workflow

    ours = {workflow.MLIR, workflow.WEIGHTS, workflow.CONFIG}
    output_folder.check(options.output, ours)
    model = load(options, progress)
    note_tokens(options, progress)
    shape = workflow.step_shapes(
        model, options.phase, options.context, options.prefill_chunk, batch=options.batch
    )[0]
    with output_folder.folder(options.output, ours) as folder:
        # a run-time extent is an attribute
        shape = replace(shape, masks_past=options.no_attributes)
        workflow.export_files(model, shape, folder, progress, attributes=not options.no_attributes)
    return 0
