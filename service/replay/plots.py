"""Plots of a comparison. This is the only module that imports matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.core.encoding import FloatArray
from service.replay.replay_record import Contestant
from service.replay.report import Curves, Summary
from service.replay.subject import Subject

# Okabe and Ito's colours, which colour-blind people can distinguish. Each algorithm has a colour, each policy a style.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
_LINES = ("-", "--", ":", "-.")
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "axes.axisbelow": True,
    "font.size": 10,
    "svg.fonttype": "none",
}
_LABELS = {
    "best": "distance of the best measured configuration, %",
    "recommended": "distance of the recommended configuration, %",
    "hypervolume": "hypervolume, share of the true front's",
}
# More bands than this would hide each other.
_MOST_BANDS = 4


def draw(
    folder: Path, subject: Subject, found: Mapping[Contestant, Curves], summaries: Sequence[Summary]
) -> list[Path]:
    """Write an SVG for each curve and one with the final results of the seeds; return the files."""
    written = []
    with mpl.rc_context(_STYLE):
        for name in dict.fromkeys(name for by_name in found.values() for name in by_name):
            figure = Figure(figsize=(8, 4.8), layout="constrained")
            _curve(figure.add_subplot(), subject, name, {one: by[name] for one, by in found.items()})
            written.append(folder / f"{name}.svg")
            figure.savefig(written[-1])
        figure = Figure(figsize=(8, 1.2 + 0.35 * len(summaries)), layout="constrained")
        _ends(figure.add_subplot(), subject, summaries)
        written.append(folder / "ends.svg")
        figure.savefig(written[-1])
    return written


def _curve(axes: Axes, subject: Subject, name: str, found: Mapping[Contestant, FloatArray]) -> None:
    """Draw the medians over the seeds with bands of the quartiles, the best first in the legend."""
    styles = _styles(list(found))
    rising = name == "hypervolume"
    order = sorted(found, key=lambda one: float(found[one][-1, 1]), reverse=rising)
    for contestant in order:
        low, middle, high = found[contestant].T
        steps = np.arange(1, len(middle) + 1)
        colour, line = styles[contestant]
        shown: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 1.8, "drawstyle": "steps-post"}
        axes.plot(steps, _drawn(middle), label=str(contestant), **shown)
        if len(found) <= _MOST_BANDS:
            axes.fill_between(steps, _drawn(low), _drawn(high), color=colour, alpha=0.15, linewidth=0, step="post")
    if not rising:
        _distances(axes, "y", max(float(np.nanmax(_drawn(one))) for one in found.values()))
    axes.set_xlim(left=1)
    axes.set_xlabel("trials")
    axes.set_title(f"{subject.name}: {_LABELS[name]}", loc="left", fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)


def _ends(axes: Axes, subject: Subject, summaries: Sequence[Summary]) -> None:
    """Draw a dot for each seed's final result and a bar at their median."""
    single = len(subject.problem.objectives) == 1
    metric = "Hypervolume" if not single else "AvgDistOpt" if subject.problem.noisy else "DistOpt"
    label = {"Hypervolume": "hypervolume", "AvgDistOpt": "recommended", "DistOpt": "best"}[metric]
    styles = _styles([one.contestant for one in summaries])
    ordered = sorted(summaries, key=lambda one: one.median(metric), reverse=single)
    jitter = np.random.default_rng(0)
    for place, summary in enumerate(ordered):
        values = np.array([value for value in summary.found[metric] if np.isfinite(value)])
        colour, _ = styles[summary.contestant]
        heights = place + jitter.uniform(-0.18, 0.18, len(values))
        axes.plot(values, heights, "o", color=colour, markersize=4, alpha=0.5, markeredgewidth=0)
        if len(values):
            axes.plot([summary.median(metric)] * 2, [place - 0.32, place + 0.32], color=colour, linewidth=2.5)
    axes.set_yticks(range(len(ordered)), [str(one.contestant) for one in ordered])
    axes.grid(visible=False, axis="y")
    if single:
        _distances(
            axes, "x", max((value for one in summaries for value in one.found[metric] if value < np.inf), default=1)
        )
        axes.set_xlim(left=-0.05)
    axes.set_title(f"{subject.name}, at the end: {_LABELS[label]} (a dot a seed)", loc="left", fontsize=10)


def _distances(axes: Axes, which: str, most: float) -> None:
    """Use a linear scale up to one per cent and a logarithmic one beyond it, so that 0 is visible."""
    getattr(axes, f"set_{which}scale")("symlog", linthresh=1.0, linscale=0.4)
    axis = axes.yaxis if which == "y" else axes.xaxis
    ticks = [0.0, *(digit * 10.0**power for power in range(8) for digit in (1, 2, 5))]
    last = next((place for place, tick in enumerate(ticks) if tick >= most), len(ticks) - 1)
    axis.set_ticks(ticks[: last + 1], minor=False)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter("{x:g}")
    getattr(axes, f"set_{which}lim")(0, ticks[last])


def _styles(found: Sequence[Contestant]) -> dict[Contestant, tuple[str, str]]:
    algorithms = list(dict.fromkeys(one.algorithm for one in found))
    policies = list(dict.fromkeys(one.resampling for one in found))
    return {
        one: (
            _COLOURS[algorithms.index(one.algorithm) % len(_COLOURS)],
            _LINES[policies.index(one.resampling) % len(_LINES)],
        )
        for one in found
    }


def _drawn(values: FloatArray) -> FloatArray:
    """Return the values with NaN, which is not drawn, in place of missing ones."""
    return np.where(np.isfinite(values), values, np.nan)
