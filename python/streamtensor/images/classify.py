"""Runs a design on the images of a folder: the class of each, and the images a second."""

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from ..design import Design
from ..errors import Error
from ..lowering.graph import ELEMENTS, Port, Signature
from ..progress import Progress
from ..quantization import calibration_inputs

_ACCEPTED = "accepted are designs of a network with one input and one result for each image"


def _signatures(folder: Path) -> tuple[Signature, Signature]:
    """The input and the result of a design that classifies."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError):
        raise Error(
            f"{folder}: not a design", "accepted is a folder that a compilation wrote"
        ) from None
    given = [item for item in manifest.get("inputs", []) if item["role"] != "weight"]
    made = manifest.get("outputs", [])
    roles = [item["role"] for item in (*given, *made)]
    if roles != ["input", "output"] or given[0]["shape"][:1] != made[0]["shape"][:1]:
        names = ", ".join(f"{item['role']} '{item['name']}'" for item in (*given, *made))
        raise Error(f"{folder}: the design does not classify: {names or 'two phases'}", _ACCEPTED)
    return tuple(
        Signature(Port(item["name"], item["role"]), tuple(item["shape"]), kind, kind)
        for item in (given[0], made[0])
        for kind in (ELEMENTS[item["dtype"]],)
    )


def _labels(path: Path | None, classes: int) -> list[str]:
    if path is None:
        return [str(number) for number in range(classes)]
    try:
        found = path.read_text().splitlines()
    except UnicodeDecodeError:
        raise Error(f"{path}: not a text", "accepted is a label on each line") from None
    if len(found) != classes:
        raise Error(
            f"{path}: {len(found)} labels for {classes} classes", "accepted is one for each"
        )
    return found


def _images(folder: Path, one: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """The images of a folder by their names, each as the design takes one."""
    for file, values in calibration_inputs.files(folder, [one], "images"):
        taken = values[0]
        several = taken.ndim == one.ndim and taken.shape[1:] == one.shape[1:]
        if len(values) != 1 or not (several or taken.shape == one.shape[1:]):
            shapes = ", ".join("x".join(map(str, each.shape)) for each in values)
            raise Error(f"{file}: {shapes}", f"accepted are images of {_spelled(one)}")
        if taken.dtype != one.dtype and not (taken.is_floating_point() and one.is_floating_point()):
            raise Error(
                f"{file}: {str(taken.dtype)[6:]}", f"accepted are images of {_spelled(one)}"
            )
        for number, image in enumerate(taken if several else [taken]):
            yield f"{file.name}[{number}]" if several else file.name, image.to(one.dtype)


def _spelled(one: torch.Tensor) -> str:
    return f"{'x'.join(map(str, one.shape[1:]))} of {str(one.dtype)[6:]}"


def _batches(images: list, count: int) -> Iterator[list]:
    for first in range(0, len(images), count):
        yield images[first : first + count]


def run(folder: Path, images: Path, labels: Path | None, device: str, progress: Progress) -> None:
    """Prints the name, the class and the highest result of each image."""
    given, made = _signatures(folder)
    one = torch.empty(1, *given.shape[1:], dtype=given.dtype)
    names = _labels(labels, math.prod(made.shape[1:]))
    found = list(_images(images, one))
    progress.stage("open the design")
    done, seconds = 0, 0.0
    with Design(folder, [given], [made], device) as design:
        progress.stage("classify")
        for batch in _batches(found, given.shape[0]):
            # a launch takes all its images: the last one's places are filled
            rows = [image for _, image in batch]
            rows += rows[-1:] * (given.shape[0] - len(rows))
            begin = time.monotonic()
            results = design(torch.stack(rows)).flatten(1)
            seconds += time.monotonic() - begin
            for (name, _), row in zip(batch, results):
                best = int(row.argmax())
                print(f"{name}\t{names[best]}\t{row[best].item():.6g}", flush=True)
            done += len(batch)
            progress.update(done / len(found))
    progress.note(f"measured on {device}: {done / seconds:.4g} images/s, {done} in {seconds:.3g} s")
    progress.note(_predicted(folder))


def _predicted(folder: Path) -> str:
    """What the report says of the platform."""
    report = json.loads((folder / "report.json").read_text())
    images = report.get("images")
    if images is None:
        return f"for {report['platform']}: {report['latency_ms']:.4g} ms a launch"
    steady = f", {images['steady_per_s']:.4g} in a row" if "steady_per_s" in images else ""
    return (
        f"{images['source']} for {report['platform']}: {images['per_s']:.4g} images/s in launches "
        f"of {images['count']}{steady}; {images['latency_ms']:.4g} ms to the first result"
    )
