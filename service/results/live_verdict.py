"""The verdict on a live study: the gain of the settings in force over those that the study has found at its start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from service.core.live_results import as_configuration
from service.core.problem import Problem
from service.core.reasons import Reason
from service.live.models import LiveStudy
from service.policies.check import interval_text, percent_text, word_for
from service.tuner.recommendation import Recommendation
from service.tuner.verdict import Finding, Level, Verdict

# The level of the interval of each step, which is valid at every look.
_LEVEL = 0.95


def verdict_of(problem: Problem, state: LiveStudy, measured: int) -> Verdict | None:
    """Return what is known of the gain of the settings in force; None before the first pair.

    One kept step is proven by its pairs alone. The interval of several is the sum of theirs. It holds with less
    confidence than each of them, so that their gain is provisional until a check compares all of them with the start.
    """
    objective = problem.objectives[0]
    usual = (state.baseline or {}).get(objective.metric)
    if usual is None:
        return None
    steps = [one for one in state.kept if one["in_force"]]
    sign = 1.0 if objective.goal == "minimize" else -1.0
    if not steps:
        settings = as_configuration(problem.space, state.incumbent or state.original or {})
        text = "no measurable gain: no candidate was kept, and the settings of the start are in force"
        return Verdict(
            Level.NO_GAIN, Finding.DEFAULT_BEST, text, settings, usual, 0, usual, 0, 0.0, None, None, 0, measured
        )
    # A check compares all steps together with the settings of the start.
    check = state.checks[-1] if state.checks and state.checks[-1]["steps"] == len(steps) else None
    shown = [check] if check is not None and len(steps) > 1 else steps
    effect = math.fsum(one["effect"] for one in shown)
    ends = [[one[name] for one in shown] for name in ("low", "high")]
    low, high = (None if None in values else math.fsum(values) for values in ends)
    gain, gains = _gain(sign, effect), [None if end is None else _gain(sign, end) for end in (low, high)]
    worst, best = sorted((gains[0], gains[1])) if gains[0] is not None and gains[1] is not None else (None, None)
    pairs = sum(one["pairs"] for one in shown)
    proven = len(shown) == 1 and worst is not None and worst > 0
    text = f"{word_for(objective)} by {percent_text(gain)} %"
    if worst is not None and best is not None and len(shown) == 1:
        text += interval_text(worst, best, _LEVEL)
    if not proven:
        text = f"provisional: {text}"
    return Verdict(
        Level.PROVEN if proven else Level.PROVISIONAL,
        Finding.BETTER,
        text,
        as_configuration(problem.space, state.incumbent or {}),
        usual * math.exp(effect),
        pairs,
        usual,
        pairs,
        gain,
        worst if len(shown) == 1 else None,
        best if len(shown) == 1 else None,
        0,
        measured,
        conditions=tuple(_conditions(steps, pairs, check, sign)),
    )


def _gain(sign: float, effect: float) -> float:
    """Return the gain as a share of the value at the start; positive is an improvement."""
    return -sign * math.expm1(effect)


def _conditions(
    steps: Sequence[Mapping[str, Any]], pairs: int, check: Mapping[str, Any] | None, sign: float
) -> list[Reason]:
    """Return how the gain is known, and where the settings are in force."""
    instances = sorted({name for one in steps for name in one["instances"]})
    found = [
        Reason(
            f"from {pairs} pairs of blocks whose order a committed coin has decided, by an interval that is valid at"
            " every look",
            "live_pairs",
            pairs=pairs,
        )
    ]
    if check is not None and check["effect"] is not None:
        gain = percent_text(_gain(sign, check["effect"]))
        text = f"compared again with the settings of the start in {check['pairs']} pairs: {gain} %"
        found.append(Reason(text, "live_checked", pairs=check["pairs"], gain=gain))
    if len(steps) > 1:
        text = f"in {len(steps)} steps, each of which is proven against the settings before it"
        found.append(Reason(text, "live_steps", steps=len(steps)))
    if instances:
        found.append(Reason(f"in force on {', '.join(instances)}", "live_in_force", instances=[*instances]))
    return found


def recommendation_of(verdict: Verdict) -> Recommendation:
    """Return the settings in force with the numbers of the verdict."""
    return Recommendation(
        verdict.configuration,
        verdict.value,
        None,
        None,
        verdict.default,
        verdict.gain,
        verdict.low,
        verdict.high,
    )
