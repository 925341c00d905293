"""streamtensor run --images: a design classifies images."""

from pathlib import Path

from ..progress import Progress
from .arguments import new_command


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "Run a design once, from .npy files to .npy files, or classify images (--images FOLDER).",
        run,
    )
    command.add_argument("design", type=Path, metavar="DESIGN", help="folder of the design")
    command.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="images: .npy and .npz, or pictures, which are resized and scaled to 0 to 1 (with "
        "the package pillow)",
    )
    command.add_argument(
        "--labels", type=Path, metavar="FILE", help="names of the classes, one on each line"
    )
    command.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="cpu (default), or xrt:0 for the first accelerator card",
    )


def run(options, progress: Progress) -> int:
    from ..images import classify

    classify.run(options.design, options.images, options.labels, options.device, progress)
    return 0
