"""Shows the stages of a long command on stderr: a progress bar on a terminal, else one line per
stage.
"""

import sys


class Progress:
    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._bar = self._task = None
        self._announced = set()
        self.interrupted = False  # by the user

    def __enter__(self):
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(file=self._stream),
            )
            self._bar.start()
        return self

    def __exit__(self, *_):
        if self._bar:
            self._finish()
            self._bar.stop()

    def stage(self, name: str) -> None:
        """Begins a stage. A repeated stage, as in the compiler's searches, is announced once."""
        self._check_interrupt()
        if name in self._announced:
            return
        self._announced.add(name)
        if self._bar:
            self._finish()
            self._task = self._bar.add_task(name, total=None)
        else:
            print(f"streamtensor: {name}", file=self._stream, flush=True)

    def update(self, fraction: float) -> None:
        """Sets the completed fraction of the current stage."""
        self._check_interrupt()
        if self._bar and self._task is not None:
            self._bar.update(self._task, total=1, completed=fraction)

    def note(self, text: str) -> None:
        print(f"streamtensor: note: {text}", file=self._stream, flush=True)

    def _check_interrupt(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt

    def _finish(self) -> None:
        if self._task is not None:
            self._bar.update(self._task, total=1, completed=1)
