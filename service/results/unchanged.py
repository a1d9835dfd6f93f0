"""Studies in which every configuration gave the same value: probably no parameter has reached the program."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.trial import TrialRecord

# Fewer configurations may have one value by chance, for example a size in whole MiB.
FEWEST = 4


def unchanged(problem: Problem, measured: Collection[Sequence[TrialRecord]]) -> str:
    """Return what to look at if all configurations gave the same value of each objective, otherwise "".

    `measured` has the completed trials of each configuration.
    """
    values = {tuple(trial.metrics.get(metric) for metric in problem.metrics) for trials in measured for trial in trials}
    if len(measured) < FEWEST or len(values) != 1:
        return ""
    (only,) = values
    if None in only:
        return ""
    shown = ", ".join(f"{metric} {value:.6g}" for metric, value in zip(problem.metrics, only, strict=True))
    return Reason(
        f"All {len(measured)} configurations gave the same result, {shown}. Has no parameter reached the program?"
        " Compare the command lines of two trials, and look whether the program, or a script, sets the value itself.",
        "all_equal",
        configurations=len(measured),
        metrics=dict(zip(problem.metrics, only, strict=True)),
    )
