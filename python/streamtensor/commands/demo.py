"""streamtensor demo: GPT-2 from PyTorch to a running design."""

from ..progress import Progress
from .arguments import add_output, add_seed, new_command
from .checked_options import checked_platform


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "GPT-2 from PyTorch to a running design; fails if its tokens differ from PyTorch's.",
        run,
        "compile",
    )
    add_seed(command)
    add_output(command)


def run(options, progress: Progress) -> int:
    from .. import demo

    platform = checked_platform(options, progress)
    return 0 if demo.run(options.output, platform, options.seed, progress) else 1
