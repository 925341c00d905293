"""Writes report.html of an exploration: Pareto front, importance of the parameters, history. The
file loads nothing.
"""

import math
from html import escape
from itertools import accumulate

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


def _scatter(trials, best) -> str:
    times, slices = (
        [trial.values[0] for trial in trials],
        [max(1.0, trial.values[1]) for trial in trials],
    )
    x, y = _scale(times, EDGE, WIDTH - EDGE / 2), _scale(slices, HEIGHT - EDGE, EDGE / 2)
    dots = ""
    for trial in sorted(trials, key=lambda trial: trial.number in best):
        kind = "front" if trial.number in best else "all"
        dots += (
            f'<circle class="{kind}" r="4" cx="{x(trial.values[0]):.1f}" '
            f'cy="{y(max(1.0, trial.values[1])):.1f}"><title>{trial.number}: '
            f"{trial.values[0]:.4g} ms, {trial.values[1]:.0f} DSP</title></circle>"
        )
    return _svg(
        "Pareto front: time against DSP slices",
        _axes("ms a launch", "DSP slices", (min(times), max(times)), (min(slices), max(slices)))
        + dots,
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
        parts.append("<h2>Pareto front</h2>" + _scatter(trials, best))
        table = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in design_trials.rows(study, len(best))
        )
        parts.append(
            "<table><tr>"
            + "".join(f"<th>{escape(heading)}</th>" for heading in design_trials.HEADINGS)
            + f"</tr>{table}</table>"
        )
        found = design_trials.importance(study)
        if found:
            parts.append("<h2>Importance of the parameters for the time</h2>" + _importance(found))
        parts.append("<h2>History</h2>" + _history(trials))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Designs</title>'
        f"<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )
