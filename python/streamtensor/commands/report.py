"""streamtensor report: prints what a design is and shows its page."""

from pathlib import Path

from ..progress import Progress
from .arguments import new_command


def add(commands, name: str) -> None:
    command = new_command(
        commands, name, "Print what a design is, and show its page in a browser.", run
    )
    command.add_argument("design", type=Path, metavar="DIR", help="design folder")
    command.add_argument("--no-page", action="store_true", help="print only, and open no browser")


def run(options, progress: Progress) -> int:
    import webbrowser

    from ..report import Report

    print(Report.read(options.design))
    page = options.design / "report.html"
    print(f"page: {page}")
    if not options.no_page and page.is_file():
        webbrowser.open(page.absolute().as_uri())
    return 0
