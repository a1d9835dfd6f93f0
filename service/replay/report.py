"""The report of a comparison: `summary.csv`, `trajectories.csv`, plots, and a table for the terminal."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from service.core.encoding import FloatArray
from service.replay import scores
from service.replay.replay_record import Contestant, Run
from service.replay.subject import Subject

# Metrics with smaller values being better. For the others a larger value is better, or neither is.
SMALLER = ("5%Opt", "DistOpt", "AvgDist", "EC", "ET", "AvgDistOpt", "Convergence", "Duration")
LARGER = ("S", "ImprovementDefault", "Hypervolume")
# A narrow terminal leaves these out first, in this order.
_LEAST_TELLING = ("Convergence", "EC", "Uniques", "Triggers", "AvgDist", "Duration", "ImprovementDefault", "ET", "S")
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Summary:
    """One contestant's metrics, with a value for each seed."""

    contestant: Contestant
    found: Mapping[str, Sequence[float]]

    def mean(self, metric: str) -> float:
        """Return the mean over the seeds in which the metric has a meaning."""
        return scores.mean(self.found[metric])

    def median(self, metric: str) -> float:
        """Return the median over the seeds in which the metric has a meaning."""
        return scores.quantile(self.found[metric], 0.5)


def summarize(subject: Subject, runs: Iterable[Run]) -> list[Summary]:
    """Return a summary for each contestant, in the order of their first runs."""
    groups: dict[Contestant, list[dict[str, float]]] = {}
    for run in runs:
        groups.setdefault(run.contestant, []).append(scores.measure(subject, run))
    return [
        Summary(contestant, {name: [one[name] for one in group] for name in scores.METRICS})
        for contestant, group in groups.items()
    ]


def write_summary(path: Path, subject: Subject, summaries: Sequence[Summary]) -> None:
    """Write a row for each contestant: mean and median of each metric over the seeds; empty without a meaning.

    The mean of 5%Opt is over the searches that came within 5 %, whose share has its own column.
    """
    columns = [f"{metric}_{kind}" for metric in scores.METRICS for kind in ("mean", "median")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "algorithm", "resampling", "runs", *columns, "5%Opt_reached"])
        for summary in summaries:
            near = summary.found["5%Opt"]
            reached = [value for value in near if math.isfinite(value)]
            cells = [
                value
                for metric in scores.METRICS
                for value in (
                    scores.mean(reached) if metric == "5%Opt" else summary.mean(metric),
                    summary.median(metric),
                )
            ]
            share = math.nan if all(map(math.isnan, near)) else len(reached) / len(near)
            writer.writerow(
                [
                    subject.name,
                    summary.contestant.algorithm,
                    summary.contestant.resampling,
                    len(near),
                    *map(_cell, [*cells, share]),
                ]
            )


Curves = Mapping[str, FloatArray]


def curves(subject: Subject, runs: Sequence[Run], budget: int) -> Curves:
    """Return the curves of one contestant's runs by name: quartiles over the seeds after each trial, [budget, 3].

    With one objective the curves are `best` and `recommended`: the distances in per cent of the best measured and of
    the recommended configuration. With several objectives it is `hypervolume`. A search that has ended keeps its value.
    """
    if len(subject.problem.objectives) > 1:
        return {"hypervolume": _quartiles([scores.volumes(subject, run) for run in runs], budget)}
    found = {"best": _quartiles([100 * scores.best_so_far(subject, run) for run in runs], budget)}
    if subject.problem.noisy:
        found["recommended"] = _quartiles([_recommended(subject, run) for run in runs], budget)
    return found


def _recommended(subject: Subject, run: Run) -> FloatArray:
    distances = subject.distances()
    known, each = math.inf, []
    last = len(run.rows) - 1
    for place, row in enumerate(run.recommended):
        row = run.final[0] if place == last and run.final else row
        known = 100 * float(distances[row]) if row >= 0 else known
        each.append(known)
    return np.array(each)


def _quartiles(each: Sequence[FloatArray], budget: int) -> FloatArray:
    steps = [[one[min(step, len(one) - 1)] for one in each if len(one)] for step in range(budget)]
    return np.array([[scores.quantile(values, share) for share in QUARTILES] for values in steps])


def write_trajectories(path: Path, found: Mapping[Contestant, Curves]) -> None:
    """Write a row for each contestant, curve and trial."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["algorithm", "resampling", "curve", "trial", "lower_quartile", "median", "upper_quartile"])
        for contestant, by_name in found.items():
            for name, quartiles in by_name.items():
                for step, row in enumerate(quartiles, start=1):
                    writer.writerow([contestant.algorithm, contestant.resampling, name, step, *map(_cell, row)])


def table(subject: Subject, summaries: Sequence[Summary], width: int) -> Table:
    """Return a table for a terminal with `width` columns: medians over the seeds, the best of each metric in bold.

    Metrics that do not fit are left out, the least informative first; `summary.csv` has all. The caption explains the
    columns.
    """
    shown = [name for name in scores.METRICS if any(not math.isnan(one.median(name)) for one in summaries)]
    if not subject.problem.noisy:
        shown = [name for name in shown if name not in ("AvgDistOpt", "Triggers")]
    names = [
        max(len(one.contestant.algorithm) for one in summaries),
        max(len(one.contestant.resampling) for one in summaries),
    ]
    for name in _LEAST_TELLING:
        if sum(max(length, 10) + 2 for length in names) + sum(max(len(one), 6) + 2 for one in shown) <= width:
            break
        shown = [one for one in shown if one != name]
    title = f"{subject.name}: medians over the seeds (S: mean)"
    made = Table("algorithm", "resampling", title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        made.add_column(name, justify="right", no_wrap=True)
    columns = {name: [one.mean(name) if name == "S" else one.median(name) for one in summaries] for name in shown}
    for place, summary in enumerate(summaries):
        cells = [Text(summary.contestant.algorithm), Text(summary.contestant.resampling)]
        for name in shown:
            value, column = columns[name][place], columns[name]
            best = _best(name, column)
            cells.append(Text(_short(value), "bold" if best is not None and value == best else ""))
        made.add_row(*cells)
    made.caption = Text("\n".join(f"{name}: {scores.METRICS[name]}" for name in shown))
    made.caption_justify = "left"
    return made


def _best(metric: str, column: Sequence[float]) -> float | None:
    there = [value for value in column if math.isfinite(value)]
    choose: Callable[[list[float]], float] | None = min if metric in SMALLER else max if metric in LARGER else None
    return choose(there) if choose is not None and len(there) > 1 else None


def _short(value: float) -> str:
    if math.isnan(value):
        return ""
    return "never" if math.isinf(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _cell(value: float) -> str:
    """Return the value as text; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.6g}"
