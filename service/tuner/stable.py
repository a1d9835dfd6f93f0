"""The recommendation of a study with `stability:`, the values that its algorithm learns, and what it says of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.space import Configuration
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies.stability import Assessment, Standing, upper_bound
from service.tuner.recommendation import Recommendation
from service.tuner.shown_values import gain_of
from service.tuner.verdict import Finding, Level, Verdict, on_default

# The level of intervals, and the nodes on which two configurations must both have been measured to be compared there.
_LEVEL, _LEAST_COMMON = 0.95, 4


def counted(problem: Problem, found: Assessment, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the trials with the values from which the algorithm learns.

    A run has the value of its configuration, with the distance of the run from its mean, and without what its node
    adds. All runs of an unstable configuration have one bad value.
    """
    sign, metric = float(problem.signs()[0]), problem.metrics[0]
    start = problem.space.key(problem.space.default())
    default = found.standings.get(start)
    values: dict[int, float] = {}
    for key, one in found.standings.items():
        for number in one.numbers:
            if one.unstable and key != start:
                values[number] = found.penalty(one, default)
            elif number in found.corrected:
                values[number] = found.corrected[number] - one.mean + one.value
            else:
                values[number] = one.value
    return [
        replace(trial, metrics={**trial.metrics, metric: sign * found.restored(values[trial.number])})
        if trial.state == TrialState.COMPLETED and trial.number in values
        else trial
        for trial in trials
    ]


def most_stable(problem: Problem, found: Assessment, settings: Stability) -> Recommendation | None:
    """Return the stable configuration with the best value among those on the most nodes; None without results.

    It is the default if no other one is stable. The interval holds for all configurations that were compared at once.
    """
    start = problem.space.key(problem.space.default())
    default = found.standings.get(start)
    able = {key: one for key, one in found.standings.items() if not one.unstable or key == start}
    able = {key: one for key, one in able.items() if one.acceptable} or able
    if not able:
        return None
    reached = {key: stage_of(settings, one) for key, one in able.items()}
    furthest = max((stage for key, stage in reached.items() if key != start), default=0)
    compared = {key: one for key, one in able.items() if key == start or reached[key] == furthest}
    best = min(compared, key=lambda key: compared[key].value)
    return _recommendation(problem, found, compared[best], default, max(len(compared) - 1, 1))


def stage_of(settings: Stability, one: Standing) -> int:
    """Return how many stages a configuration has completed."""
    return sum(one.runs >= nodes for nodes in settings.nodes)


def unstable_ones(found: Assessment) -> list[Standing]:
    """Return the unstable configurations, the best by their means first."""
    return sorted((one for one in found.standings.values() if one.unstable), key=lambda one: one.mean)


def conditions_of(
    problem: Problem, found: Assessment, settings: Stability, configuration: Configuration
) -> list[Reason]:
    """Return what is known of the nodes of a recommended configuration, and of nodes that were not measured."""
    one = found.standings.get(problem.space.key(configuration))
    if one is None:
        return []
    nodes, limit = len(one.nodes), settings.unstable
    reasons = [_stable(one, limit)] if not one.unstable else [_unstable(one, limit)]
    if nodes < settings.most_nodes:
        text = f"measured on {nodes} of {settings.most_nodes} nodes that stability.nodes asks for"
        reasons.append(Reason(text, "fewer_nodes", nodes=nodes, wanted=settings.most_nodes))
    better = [other for other in unstable_ones(found) if other is not one and other.mean < one.mean]
    if better:
        count = len(better)
        text = f"{count} {'configuration was' if count == 1 else 'configurations were'} better on average but unstable"
        reasons.append(Reason(text, "unstable_left_out", count=count, trials=[other.numbers[0] for other in better]))
    return reasons


def without_unstable(problem: Problem, found: Assessment, settings: Stability, verdict: Verdict) -> Verdict:
    """Return the verdict with the default in place of an unstable configuration, which is never recommended."""
    one = found.standings.get(problem.space.key(verdict.configuration))
    default = problem.space.default()
    if one is None or not one.unstable or verdict.default is None or verdict.configuration == default:
        return verdict
    text = f"no gain to use: unstable on {len(one.bad)} of {len(one.nodes)} nodes ({', '.join(one.bad_names)})"
    return replace(on_default(verdict, default), level=Level.NO_GAIN, code=Finding.UNSTABLE, text=text)


def _stable(one: Standing, limit: float) -> Reason:
    nodes = len(one.nodes)
    if nodes == 0:
        return Reason("no node of its runs is known", "nodes_unknown")
    most = upper_bound(0, nodes)
    text = (
        f"stable on {nodes} of {nodes} nodes; a new node may be {100 * limit:.0f} % worse"
        f" with a probability of at most {100 * most:.0f} %"
    )
    return Reason(text, "stable", nodes=nodes, limit=limit, most=most)


def _unstable(one: Standing, limit: float) -> Reason:
    nodes, bad = len(one.nodes), len(one.bad)
    text = (
        f"unstable: {100 * limit:.0f} % worse on {bad} of {nodes} nodes ({', '.join(one.bad_names)});"
        f" a new node may be so with a probability of at most {100 * upper_bound(bad, nodes):.0f} %"
    )
    return Reason(text, "unstable", nodes=nodes, bad=[*one.bad_names], limit=limit, most=upper_bound(bad, nodes))


def _recommendation(
    problem: Problem, found: Assessment, best: Standing, default: Standing | None, compared: int
) -> Recommendation:
    sign = float(problem.signs()[0])
    level = 1.0 - (1.0 - _LEVEL) / compared
    value = sign * found.restored(best.mean)
    ends: list[float | None] = [None, None]
    if best.runs > 1 and found.deviation is not None:
        reach = _student(level, best.runs) * best.deviation / math.sqrt(best.runs)
        ends = sorted(sign * found.restored(best.mean + by) for by in (-reach, reach))  # type: ignore[assignment]
    plain = Recommendation(best.configuration, value, ends[0], ends[1])
    if default is None:
        return plain
    before = found.restored(default.mean)
    if best.configuration == default.configuration:
        return replace(plain, default=sign * before, gain=0.0)
    known = replace(plain, default=sign * before, gain=gain_of(before, sign * value))
    half = _reach(best, default, level, is_known=found.deviation is not None)
    if half is None or known.gain is None:
        return known
    middle = best.mean - default.mean
    low, high = (gain_of(before, found.restored(default.mean + middle + by)) for by in (half, -half))
    return replace(known, gain_low=low, gain_high=high)


def _reach(best: Standing, default: Standing, level: float, *, is_known: bool) -> float | None:
    """Return half of the interval of the difference to the default on the scale; None if nothing is known of it.

    It follows from the nodes that both were measured on. With too few of them, all runs count.
    """
    common = [best.nodes[one] - default.nodes[one] for one in best.nodes if one in default.nodes]
    if len(common) >= _LEAST_COMMON:
        return _student(level, len(common)) * float(np.std(common, ddof=1)) / math.sqrt(len(common))
    runs = min(best.runs, default.runs)
    if not is_known or runs < 2:
        return None
    both = [one.deviation / math.sqrt(one.runs) for one in (best, default)]
    return _student(level, runs) * math.hypot(*both)


def _student(level: float, runs: int) -> float:
    """Return the quantile of Student's distribution for an interval at this level."""
    from scipy.special import stdtrit

    return float(stdtrit(max(runs - 1, 1), 0.5 + level / 2))
