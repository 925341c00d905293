"""What a design's report.json says, with types and with units in the names."""

import html
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import folder_file
from .errors import Error


def shown(value) -> str:
    """The value in a table; nothing for None."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else f"{value}"


class Html(str):
    """A cell of a table that is HTML already."""


def html_table(headings: Iterable, rows: Iterable[Iterable]) -> str:
    """A table in HTML; cells other than Html are texts."""

    def line(tag: str, cells: Iterable) -> str:
        texts = (each if isinstance(each, Html) else html.escape(str(each)) for each in cells)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    return f"<table>{line('th', headings)}{''.join(line('td', row) for row in rows)}</table>"


class Rows(list):
    """A list of dictionaries, shown as a table of all their keys."""

    def _texts(self) -> list[list[str]]:
        names = list(dict.fromkeys(name for row in self for name in row))
        return [names, *([shown(row.get(name)) for name in names] for row in self)]

    def __repr__(self) -> str:
        if not self:
            return "no rows"
        texts = self._texts()
        widths = [max(map(len, column)) for column in zip(*texts)]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
            for row in texts
        )

    def _repr_html_(self) -> str:
        headings, *rows = self._texts() if self else [["no rows"]]
        return html_table(headings, rows)


def frame(rows: list[dict]):
    """A pandas.DataFrame of the rows, or a list of them where pandas is not installed."""
    try:
        import pandas
    except ImportError:
        return Rows(rows)
    return pandas.DataFrame(rows)


@dataclass(frozen=True)
class Resources:
    luts: int
    ffs: int
    dsps: int
    bram18s: int
    urams: int

    @classmethod
    def of(cls, found: dict) -> "Resources":
        names = ("lut", "ff", "dsp", "bram18", "uram")
        return folder_file.typed(cls(*(found.get(key, 0) for key in names)))


@dataclass(frozen=True)
class Kernel:
    """One process of the design. Waits are None where no launch was simulated."""

    name: str
    layer: str | None  # path of the module that it comes from, layers.* of rolled layers
    line: int | None  # of the input, of MLIR or C
    busy_cycles: int
    input_wait_cycles: int | None  # for words
    output_wait_cycles: int | None  # for space
    memory_wait_cycles: int | None
    initiation_interval: int  # cycles between iterations
    lanes: int  # operations of a kind at once
    dsps: int
    luts: int
    bram18s: int
    urams: int
    die: int

    @property
    def stall_cycles(self) -> int | None:
        """Cycles in which it waits for words, for space or for memory."""
        every = (self.input_wait_cycles, self.output_wait_cycles, self.memory_wait_cycles)
        waits = [each for each in every if each is not None]
        return sum(waits) if len(waits) == len(every) else None

    @classmethod
    def of(cls, found: dict) -> "Kernel":
        figures: list[Any] = [
            found["name"],
            found.get("layer"),
            found.get("line"),
            found["cycles"],
            *(found.get(f"{kind}_wait") for kind in ("input", "output", "memory")),
            *(found[key] for key in ("ii", "unroll", "dsp", "lut", "bram18", "uram", "die")),
        ]
        return folder_file.typed(cls(*figures))


@dataclass(frozen=True)
class Report:
    """Figures of one launch; docs/report.md says more of each. `json` is all of them."""

    name: str
    platform: str
    clock_mhz: float
    quant: str  # the scheme
    latency_ms: float  # of a launch, with what the host needs to start it
    cycles: int  # of a launch
    cycles_source: str  # simulated or modeled
    modeled_cycles: int  # what the model says, beside a simulation
    lower_bound_cycles: int  # of the busiest process or memory channel
    first_output_cycles: int | None  # until the first result leaves
    token_ms: float | None  # of language models
    tokens_per_s: float | None  # of language models
    deadlock: bool | None  # None: no launch was simulated
    termination: str  # how it is known that a launch ends
    bottleneck: str  # what limits it
    suggestions: tuple[str, ...]  # what would help
    watts: float  # modelled
    launch_mj: float  # modelled
    used: Resources
    available: Resources
    image_latency_cycles: int | None  # of networks for images: from an image's entry to its result
    interval_cycles: int | None  # of networks for images: between images that follow one another
    images_per_s: float | None  # of networks for images
    memory_ports: int
    fifo_bytes: int  # of memory on chip
    converter_bytes: int  # of memory on chip
    kernels: tuple[Kernel, ...]
    json: dict = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> "Report":
        path = folder / "report.json"
        try:
            with folder_file.reading(path):
                return folder_file.typed(cls._of(folder_file.read(path)))
        except OSError:
            raise Error(
                f"{folder}: the design has no report.json: it was moved or deleted",
                "accepted is a design folder; compile it again",
            ) from None

    @classmethod
    def _of(cls, found: Any) -> "Report":
        cycles, images = found["cycles"], found.get("images", {})
        return cls(
            **{key: found[key] for key in ("name", "platform", "clock_mhz", "quant")},
            **{key: found[key] for key in ("latency_ms", "termination")},
            **{key: found.get(key) for key in ("token_ms", "tokens_per_s", "deadlock")},
            cycles=cycles.get("simulated", cycles["model"]),
            cycles_source="simulated" if "simulated" in cycles else "modeled",
            modeled_cycles=cycles["model"],
            lower_bound_cycles=cycles["lower_bound"],
            first_output_cycles=cycles.get("first_output"),
            bottleneck=found.get("bottleneck", ""),
            suggestions=tuple(found.get("suggestions", ())),
            watts=found["energy"]["watts"],
            launch_mj=found["energy"]["launch_mj"],
            used=Resources.of(found["resources"]),
            available=Resources.of(found["available"]),
            image_latency_cycles=images.get("latency_cycles"),
            interval_cycles=images.get("interval_cycles"),
            images_per_s=images.get("per_s"),
            memory_ports=found["ports"],
            fifo_bytes=found["fifos"]["bytes"],
            converter_bytes=found["converters"]["bytes"],
            kernels=tuple(map(Kernel.of, found["kernels"])),
            json=found,
        )

    @property
    def speed(self) -> str:
        return (
            f"{self.latency_ms:g} ms a launch: {self.cycles:,} cycles ({self.cycles_source}) at "
            f"{self.clock_mhz:g} MHz"
        )

    @property
    def size(self) -> str:
        """The resources that are used, each with its part of those available."""
        names = {"luts": "LUTs", "dsps": "DSPs", "bram18s": "BRAM18s", "urams": "URAMs"}
        return ", ".join(
            f"{used:,} {name} ({100 * used / has:.1f} %)"
            for key, name in names.items()
            if (used := getattr(self.used, key)) and (has := getattr(self.available, key))
        )

    def rows(self) -> list[dict]:
        """A row for each kernel, those that wait longest first."""
        names = [each.name for each in fields(Kernel)]
        ranked = sorted(
            self.kernels, key=lambda each: (-(each.stall_cycles or 0), -each.busy_cycles)
        )
        return [
            {**{name: getattr(each, name) for name in names}, "stall_cycles": each.stall_cycles}
            for each in ranked
        ]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.name} on {self.platform}: {self.speed}",
                self.size,
                f"bottleneck: {self.bottleneck}",
                *(f"suggestion: {each}" for each in self.suggestions),
            ]
        )
