"""Figures of a study, as Optuna's users know them. They need Matplotlib: `pip install matplotlib`.

    import trimtab.plots as plots

    plots.history(study)
    plots.importance(study).figure.savefig("importance.png")

Each function returns Matplotlib's Axes; those that draw several return an array of them. `ax` draws into a figure of
yours. A figure shows the values that trials had, and never a value that a trial did not have.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.errors import InvalidInput
from trimtab.objective import Maximize, Objective
from trimtab.space import Float, Int, Parameter, Scalar
from trimtab.study import Study
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

__all__ = ["contour", "edf", "history", "importance", "parallel_coordinates", "pareto_front", "slices"]

_MOST_PARAMETERS = 10


def history(study: Study, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the value of each completed trial, and the best one so far.

    With a verdict, a band shows the expected value of the best configuration if the gain has its interval.
    """
    objective, axes = _objective(study, metric), _axes(ax)
    trials = [trial for trial in _completed(study) if objective.metric in trial.metrics]
    numbers, values = [trial.number for trial in trials], [trial.metrics[objective.metric] for trial in trials]
    axes.scatter(numbers, values, s=16, label="completed trial")
    allowed = [trial for trial in trials if not trial.breaks]
    best: list[float] = []
    for trial in allowed:
        value = trial.metrics[objective.metric]
        best.append(value if not best else _better(objective)(best[-1], value))
    axes.step([trial.number for trial in allowed], best, where="post", color="tab:red", label="best single run so far")
    verdict = study.verdict if len(study.objectives) == 1 else None
    if verdict is not None and verdict.default is not None and verdict.low is not None and verdict.high is not None:
        sign = 1.0 if isinstance(objective, Maximize) else -1.0
        ends = sorted(verdict.default + sign * abs(verdict.default) * gain for gain in (verdict.low, verdict.high))
        axes.axhspan(*ends, color="tab:green", alpha=0.2, label=f"verdict: {verdict.level.value.lower()}")
        axes.axhline(verdict.default, color="tab:gray", linestyle="--", label="default")
    return _named(axes, "History", "trial", _label(objective), legend=bool(trials))


def importance(study: Study, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the share of the variance that each parameter explains alone. It is empty with too few results."""
    objective, axes = _objective(study, metric), _axes(ax)
    shares = study.importance(objective.metric)
    names = list(shares)[::-1]
    axes.barh(names, [shares[name] for name in names])
    axes.set_xlim(0, 1)
    return _named(axes, f"Importance for {objective.metric}", "share of the variance", "")


def slices(
    study: Study, parameters: Sequence[str] | None = None, metric: str | None = None
) -> "np.ndarray[Any, np.dtype[Any]]":
    """Draw the value of each completed trial over each parameter, one plot for each; return the array of Axes."""
    from matplotlib import pyplot as plt

    objective, chosen = _objective(study, metric), _parameters(study, parameters)
    trials = _completed(study)
    figure, row = plt.subplots(
        1, len(chosen), sharey=True, squeeze=False, figsize=(3 * len(chosen) + 1, 3.5), layout="constrained"
    )
    for axes, parameter in zip(row[0], chosen, strict=True):
        shown = [trial for trial in trials if parameter.name in trial.params and objective.metric in trial.metrics]
        places = _Scale(parameter, trials)
        places.set(axes, "x")
        points = axes.scatter(
            [places.at(trial.params[parameter.name]) for trial in shown],
            [trial.metrics[objective.metric] for trial in shown],
            c=[trial.number for trial in shown],
            cmap="Blues",
            edgecolors="tab:gray",
            s=20,
        )
        _named(axes, "", parameter.name, _label(objective) if axes is row[0][0] else "")
    figure.colorbar(points, ax=list(row[0]), label="trial")
    return row[0]  # type: ignore[no-any-return]


def contour(study: Study, first: str, second: str, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the value of completed trials over two parameters, and the surface of the model where there is one."""
    objective, axes = _objective(study, metric), _axes(ax)
    one, other = _parameters(study, [first, second])
    trials = [
        trial
        for trial in _completed(study)
        if first in trial.params and second in trial.params and objective.metric in trial.metrics
    ]
    across, up = _Scale(one, trials), _Scale(other, trials)
    across.set(axes, "x")
    up.set(axes, "y")
    found = study.insight()
    for each in () if found is None else found.objectives:
        for surface in each.surfaces if each.metric == objective.metric else ():
            if {surface.first, surface.second} == {first, second}:
                rows, columns = [list(surface.first_levels), list(surface.second_levels)]
                mean = [list(row) for row in surface.mean]
                if surface.first == first:  # a row of `mean` is one level of the first parameter
                    rows, columns, mean = columns, rows, [list(column) for column in zip(*mean, strict=True)]
                filled = axes.contourf([across.at(x) for x in columns], [up.at(y) for y in rows], mean, levels=20)
                axes.figure.colorbar(filled, ax=axes, label=_label(objective))
    axes.scatter(
        [across.at(trial.params[first]) for trial in trials],
        [up.at(trial.params[second]) for trial in trials],
        c=[trial.metrics[objective.metric] for trial in trials],
        edgecolors="black",
        s=24,
    )
    return _named(axes, f"{objective.metric} over {first} and {second}", first, second)


def pareto_front(study: Study, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the completed trials of a study with two objectives, and its Pareto front."""
    if len(study.objectives) != 2:
        raise InvalidInput.of("study", study.name, "a study with two objectives")
    axes = _axes(ax)
    first, second = study.objectives
    for trials, color, label in (
        (_completed(study), "tab:blue", "completed trial"),
        (study.pareto_front(), "tab:red", "Pareto front"),
    ):
        points = [(trial.metrics[first.metric], trial.metrics[second.metric]) for trial in trials]
        axes.scatter([x for x, _ in points], [y for _, y in points], s=20, color=color, label=label)
    return _named(axes, "Pareto front", _label(first), _label(second), legend=True)


def parallel_coordinates(
    study: Study, parameters: Sequence[str] | None = None, metric: str | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw each completed trial as a line through its values. The line of a trial has gaps where it lacks a value."""
    from matplotlib import cm, colormaps, colors

    objective, axes = _objective(study, metric), _axes(ax)
    chosen = _parameters(study, parameters)
    trials = [trial for trial in _completed(study) if objective.metric in trial.metrics]
    scales = [_Scale(parameter, trials) for parameter in chosen]
    values = [trial.metrics[objective.metric] for trial in trials]
    norm = colors.Normalize(min(values, default=0.0), max(values, default=1.0))
    shades = cm.ScalarMappable(norm, "viridis")
    for trial, value in zip(trials, values, strict=True):
        heights = [
            scale.share(trial.params[parameter.name]) if parameter.name in trial.params else float("nan")
            for scale, parameter in zip(scales, chosen, strict=True)
        ]
        axes.plot(range(len(chosen)), heights, color=colormaps["viridis"](norm(value)), alpha=0.6, marker=".")
    axes.set_xticks(range(len(chosen)), [parameter.name for parameter in chosen], rotation=20)
    axes.set_yticks([0, 1], ["low", "high"])
    axes.figure.colorbar(shades, ax=axes, label=_label(objective))
    return _named(axes, "Parallel coordinates", "", "")


def edf(studies: Study | Sequence[Study], metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the empirical distribution function of the completed trials of one or several studies."""
    listed = [studies] if isinstance(studies, Study) else list(studies)
    axes, label = _axes(ax), ""
    for study in listed:
        objective = _objective(study, metric)
        label = _label(objective)
        values = sorted(t.metrics[objective.metric] for t in _completed(study) if objective.metric in t.metrics)
        axes.step(values, [(place + 1) / len(values) for place in range(len(values))], where="post", label=study.name)
    axes.set_ylim(0, 1)
    return _named(axes, "Empirical distribution", label, "share of the trials", legend=bool(listed))


class _Scale:
    """The places of a parameter's values on an axis."""

    def __init__(self, parameter: Parameter, trials: Sequence[Trial]) -> None:
        self._numeric = isinstance(parameter, Float | Int)
        self._log = isinstance(parameter, Float | Int) and (parameter.log or parameter.factor is not None)
        values: Sequence[Scalar] = getattr(parameter, "values", (False, True))
        if self._numeric:
            # Trials from before a change of the range may lie outside of it.
            had = [float(trial.params[parameter.name]) for trial in trials if parameter.name in trial.params]
            values = [*had, float(getattr(parameter, "min", 0.0)), float(getattr(parameter, "max", 1.0))]
        self._values = list(values)
        self._places: Mapping[str, int] = {repr(value): place for place, value in enumerate(values)}

    def at(self, value: Scalar) -> float:
        return float(value) if self._numeric else float(self._places.get(repr(value), -1))

    def share(self, value: Scalar) -> float:
        """Return the place between the ends, from 0 to 1."""
        from math import log

        ends = [float(one) for one in (min(self._values), max(self._values))] if self._numeric else [0.0, 0.0]
        if not self._numeric:
            ends[1] = float(len(self._values) - 1)
        low, high, place = (log(one) for one in (*ends, self.at(value))) if self._log else (*ends, self.at(value))
        return 0.5 if high == low else (place - low) / (high - low)

    def set(self, axes: "Axes", which: str) -> None:
        if self._log:
            getattr(axes, f"set_{which}scale")("log")
        if not self._numeric:
            getattr(axes, f"set_{which}ticks")(range(len(self._values)), [str(value) for value in self._values])


def _axes(given: "Axes | None") -> "Axes":
    if given is not None:
        return given
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("trimtab.plots needs Matplotlib: pip install matplotlib") from error
    return plt.subplots(layout="constrained")[1]


def _named(axes: "Axes", title: str, x: str, y: str, *, legend: bool = False) -> "Axes":
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if legend:
        axes.legend()
    return axes


def _completed(study: Study) -> list[Trial]:
    return study.trials([TrialState.COMPLETED])


def _objective(study: Study, metric: str | None) -> Objective:
    for objective in study.objectives:
        if metric in (None, objective.metric):
            return objective
    allowed = f"one of the objectives: {', '.join(one.metric for one in study.objectives)}"
    raise InvalidInput.of("metric", metric, allowed)


def _parameters(study: Study, names: Sequence[str] | None) -> list[Parameter]:
    """Return the named parameters, by default the first ones."""
    known = {parameter.name: parameter for parameter in study.spec.space}
    for name in names or ():
        if name not in known:
            raise InvalidInput.of("parameters", name, f"names of parameters: {', '.join(known)}")
    return list(known.values())[:_MOST_PARAMETERS] if names is None else [known[name] for name in names]


def _better(objective: Objective) -> Any:
    return max if isinstance(objective, Maximize) else min


def _label(objective: Objective) -> str:
    return f"{objective.metric} ({objective.unit})" if objective.unit else objective.metric
