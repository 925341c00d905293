"""Writes report.html of an exploration: Pareto front, importance of the parameters, history; of C
also where the front lies in the space, baselines, and the loops of the quickest design. The file
loads nothing.
"""

import math
from html import escape
from itertools import accumulate

from ..report import html_table
from . import design_trials

WIDTH, HEIGHT, EDGE = 640, 320, 56
STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
  color:#1b1f24;background:#fff}
table{border-collapse:collapse;font-size:13px}
td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #d8dee4}
td:last-child,th:last-child{text-align:left}
svg{width:100%;height:auto}
text{font:12px system-ui,sans-serif;fill:currentColor}
.axis{stroke:#8c959f}
.all{fill:#8c959f}
.front{fill:#0969da}
.line{stroke:#0969da;fill:none;stroke-width:2}
.bar{fill:#0969da}
@media(prefers-color-scheme:dark){
  body{color:#e6edf3;background:#0d1117}
  td,th{border-color:#30363d}
}"""


def _scale(values, low: float, high: float):
    """A logarithmic scale from the range of positive values to low ... high."""
    least, most = math.log(min(values)), math.log(max(values))
    span = most - least or 1
    return lambda value: low + (math.log(value) - least) / span * (high - low)


def _axes(x_label: str, y_label: str, x_range, y_range) -> str:
    bottom = HEIGHT - EDGE
    return (
        f'<path class="axis" fill="none" d="M{EDGE} '
        f'{EDGE / 2}V{bottom}H{WIDTH - EDGE / 2}"/><text x="{WIDTH / 2}" y="{HEIGHT - 10}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="{EDGE}" y="{bottom + 18}">{x_range[0]:.4g}</text><text '
        f'x="{WIDTH - EDGE / 2}" y="{bottom + 18}" text-anchor="end">{x_range[1]:.4g}</text>'
        f'<text x="{EDGE - 6}" y="{bottom}" text-anchor="end">{y_range[0]:.4g}</text><text '
        f'x="{EDGE - 6}" y="{EDGE / 2 + 10}" text-anchor="end">{y_range[1]:.4g}</text>'
        f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 '
        f'{HEIGHT / 2})">{escape(y_label)}</text>'
    )


def _svg(label: str, inside: str, height: int = HEIGHT) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} '
        f'{height}">{inside}</svg>'
    )


def _dots(trials, best, at, title) -> str:
    """A dot for each trial, those of the front on top."""
    dots = ""
    for trial in sorted(trials, key=lambda trial: trial.number in best):
        kind, (x, y) = "front" if trial.number in best else "all", at(trial)
        dots += (
            f'<circle class="{kind}" r="4" cx="{x:.1f}" cy="{y:.1f}">'
            f"<title>{trial.number}: {escape(title(trial))}</title></circle>"
        )
    return dots


def _scatter(trials, best, figure: int, name: str) -> str:
    times = [trial.values[0] for trial in trials]
    areas = {trial.number: max(1.0, trial.values[figure]) for trial in trials}
    least, most = min(areas.values()), max(areas.values())
    x, y = _scale(times, EDGE, WIDTH - EDGE / 2), _scale((least, most), HEIGHT - EDGE, EDGE / 2)
    return _svg(
        f"Pareto front: time against {name}",
        _axes("ms a launch", name, (min(times), max(times)), (least, most))
        + _dots(
            trials,
            best,
            lambda trial: (x(trial.values[0]), y(areas[trial.number])),
            lambda trial: f"{trial.values[0]:.4g} ms, {trial.values[figure]:.0f} {name}",
        ),
    )


def _components(trials):
    """The two principal components of the parameters: each trial's place on them, their shares of
    the variance, and the parameter that weighs most in each. None where fewer than two vary.
    """
    import numpy

    names = [name for name, kind in trials[0].distributions.items() if len(kind.choices) > 1]
    places = numpy.array(
        [
            [trial.distributions[name].choices.index(trial.params[name]) for name in names]
            for trial in trials
        ],
        dtype=float,
    )
    spread = places.std(axis=0)
    names = [name for name, each in zip(names, spread) if each]
    if len(names) < 2 or len(trials) < 3:
        return None
    places = (places - places.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    _, sizes, axes = numpy.linalg.svd(places, full_matrices=False)
    axes = axes[:2]
    heaviest = abs(axes).argmax(axis=1)
    for row, at in enumerate(heaviest):  # the sign of an axis means nothing
        axes[row] *= 1 if axes[row][at] > 0 else -1
    shares = (sizes**2 / (sizes**2).sum())[:2]
    return (places @ axes.T).tolist(), shares.tolist(), [names[at] for at in heaviest]


def _space(trials, best) -> str:
    found = _components(trials)
    if not found:
        return ""
    places, shares, heaviest = found
    at = dict(zip((trial.number for trial in trials), places))
    ranges = [(min(each), max(each)) for each in zip(*places)]

    def place(trial):
        shift = [
            (value - low) / ((high - low) or 1)
            for value, (low, high) in zip(at[trial.number], ranges)
        ]
        bottom = HEIGHT - EDGE
        return EDGE + shift[0] * (WIDTH - 1.5 * EDGE), bottom - shift[1] * (bottom - EDGE / 2)

    labels = [
        f"component {i + 1}, {100 * share:.0f} % of the variance, mostly {name}"
        for i, (share, name) in enumerate(zip(shares, heaviest))
    ]
    return (
        "<h2>Where the front lies in the space</h2><p>The parameters of every design, projected "
        "to the two directions in which they vary most; blue: on the front.</p>"
        + _svg(
            "The space in two dimensions",
            _axes(labels[0], f"component 2, mostly {heaviest[1]}", *ranges)
            + _dots(trials, best, place, lambda trial: f"{trial.values[0]:.4g} ms"),
        )
    )


def baselines(study, trials) -> list[list[str]]:
    """Rows of what the quickest design is compared with: [name, cycles, times as slow, origin]."""
    quickest = min(trials, key=lambda trial: trial.values[0])

    def cycles(trial) -> int:
        return trial.user_attrs.get("simulated") or trial.user_attrs["cycles"]

    own, found = cycles(quickest), []
    baseline = quickest.user_attrs.get("baseline")
    if baseline:
        most = max(quickest.user_attrs["loops"], key=lambda row: row.get("iterations", 0))
        origin = f"closed form: {most['iteration_cycles']} cycles an iteration in line "
        found.append(("the C as it stands", baseline["cycles"], f"{origin}{most['line']}"))
    for name, heuristic in design_trials.HEURISTICS.items():
        for trial in trials:
            usual = {key: value for key, value in trial.params.items() if key not in heuristic}
            first = {key: value for key, value in trials[0].params.items() if key in usual}
            if usual == first and heuristic.items() <= trial.params.items():
                found.append((name, cycles(trial), f"trial {trial.number}"))
                break
    rows = [(f"the quickest design, trial {quickest.number}", own, "this exploration"), *found]
    return [[name, f"{each:,}", f"{each / own:.4g}", origin] for name, each, origin in rows]


LOOP_HEADINGS = (
    "kernel", "line", "loops", "LP", "RVB", "Perm. Map", "Tiling Sizes", "Unrolling",
    "Pipeline II", "Array Partition",
)  # fmt: skip


def loop_rows(loops: list[dict]) -> list[list]:
    """The transformations of a design, a row for each statement (docs/report.md: loops)."""
    return [
        [
            row["kernel"],
            row["line"],
            ", ".join(f"{name} {trips}" for name, trips in zip(row["loops"], row["trips"])),
            "yes" if row["perfectized"] else "no",
            "yes" if row["bounds_removed"] else "no",
            *(str(row.get(key, "-")) for key in ("permutation", "tiles", "unrolled", "ii")),
            "; ".join(row.get("partitions", [])) or "none",
        ]
        for row in loops
    ]


def _of_c(study, trials, best) -> str:
    quickest = min(trials, key=lambda trial: trial.values[0])
    return (
        _scatter(trials, best, 2, "LUT")
        + _scatter(trials, best, 3, "BRAM18")
        + _space(trials, best)
        + "<h2>Baselines</h2>"
        + html_table(("", "cycles", "times as slow", "from"), baselines(study, trials))
        + f"<h2>Loops of the quickest design, trial {quickest.number}</h2>"
        + html_table(LOOP_HEADINGS, loop_rows(quickest.user_attrs.get("loops", [])))
    )


def _history(trials) -> str:
    times, last = [trial.values[0] for trial in trials], max(1, trials[-1].number)
    x, y = (
        [EDGE + trial.number / last * (WIDTH - 1.5 * EDGE) for trial in trials],
        _scale(times, HEIGHT - EDGE, EDGE / 2),
    )
    dots = "".join(
        f'<circle class="all" r="3" cx="{at:.1f}" cy="{y(time):.1f}"/>'
        for at, time in zip(x, times)
    )
    line = "M" + "L".join(
        f"{at:.1f} {y(least):.1f}" for at, least in zip(x, accumulate(times, min))
    )
    return _svg(
        "History: the quickest design so far",
        _axes("trial", "ms a launch", (0, last), (min(times), max(times)))
        + dots
        + f'<path class="line" d="{line}"/>',
    )


def _importance(found: dict[str, float]) -> str:
    bars = ""
    for i, (name, value) in enumerate(sorted(found.items(), key=lambda item: -item[1])):
        bars += (
            f'<text x="130" y="{24 * i + 20}" text-anchor="end">{escape(name)}</text><rect '
            f'class="bar" x="140" y="{24 * i + 8}" width="{max(1.0, 420 * value):.1f}" '
            'height="16"/>'
            f'<text x="{146 + 420 * value:.1f}" y="{24 * i + 20}">{100 * value:.0f} %</text>'
        )
    return _svg("Importance of the parameters for the time", bars, 24 * len(found) + 16)


def page(study) -> str:
    ended = design_trials.finished(study)
    trials = [trial for trial in ended if trial.state.name == "COMPLETE"]
    best = {trial.number for trial in design_trials.pareto_front(study)}
    own = study.user_attrs
    parts = [
        f"<h1>Designs on {escape(own['platform'])}</h1><p>{len(trials)} designs, {len(best)} "
        f"of them Pareto-optimal; {len(ended) - len(trials)} trials failed. Quantization: "
        f"{escape(own['quant'])}."
        " Times are simulated where a simulated figure is listed, else modeled. Energy is an "
        "estimate.</p>"
    ]
    if trials:
        parts.append("<h2>Pareto front</h2>" + _scatter(trials, best, 1, "DSP slices"))
        if own.get("source"):
            parts.append(_of_c(study, trials, best))
            parts.append("<h2>Designs on the front</h2>")
        parts.append(
            html_table(design_trials.headings(study), design_trials.rows(study, len(best)))
        )
        found = design_trials.importance(study)
        if found:
            parts.append("<h2>Importance of the parameters for the time</h2>" + _importance(found))
        parts.append("<h2>History</h2>" + _history(trials))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Designs</title>'
        f"<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )
