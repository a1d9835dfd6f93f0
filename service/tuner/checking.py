"""The rounds of a final check, as its trials tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.check import slows
from service.policies.check_rounds import Outcome, Round, Run

_OUTCOMES = {
    TrialState.REQUESTED: Outcome.OPEN,
    TrialState.ACTIVE: Outcome.OPEN,
    TrialState.COMPLETED: Outcome.MEASURED,
    TrialState.FAILED: Outcome.FAILED,
}


def rounds_of(problem: Problem, sides: Sequence[Configuration], trials: Iterable[TrialRecord]) -> list[Round]:
    """Return the rounds of these trials, in the order of their numbers.

    `sides`: the configurations that are measured, the default first. A trial of another configuration does not count.
    """
    places = {problem.space.key(one): place for place, one in enumerate(sides)}
    rounds: dict[int, dict[int, Run]] = {}
    for trial in sorted(trials, key=lambda one: one.number):
        side = places.get(problem.space.key(trial.configuration))
        if side is not None:
            number = _first_without(rounds, side, len(sides)) if trial.round is None else trial.round
            rounds.setdefault(number, {})[side] = run_of(problem, trial)
    return [Round(number, rounds[number], len(sides)) for number in sorted(rounds)]


def run_of(problem: Problem, trial: TrialRecord) -> Run:
    """Return a trial as a run of its side."""
    outcome = _OUTCOMES.get(trial.state, Outcome.UNUSABLE)
    machine = f"{trial.agent}/{trial.node}"
    if outcome is not Outcome.MEASURED:
        return Run(outcome, machine=machine, reason=trial.reason)
    pairs = zip(problem.signs().tolist(), problem.metrics, strict=True)
    return Run(
        outcome,
        values=tuple(sign * trial.metrics[metric] for sign, metric in pairs),
        waits=waits_of(problem, trial),
        share=trial.share,
        machine=machine,
        broken=not problem.acceptable(trial.metrics),
    )


def waits_of(problem: Problem, trial: TrialRecord) -> tuple[float | None, ...]:
    """Return by objective for which part of a trial its own processes waited for a CPU; None if that is unknown.

    It is 0 for an objective that waiting does not change.
    """
    found = trial.interference
    if found is None:
        return (None,) * len(problem.objectives)
    free = set(found.unaffected)
    return tuple(
        0.0 if one.metric in free else found.wait if found.wait is None or slows(one) else 0.0
        for one in problem.objectives
    )


def _first_without(rounds: Mapping[int, Mapping[int, Run]], side: int, sides: int) -> int:
    """Return the round of a trial that says nothing of its round: the first one that lacks a run of its side.

    Trials in the same process, and those of checks that an earlier version has begun, say nothing of it.
    """
    for number in sorted(rounds):
        if side not in rounds[number] and not Round(number, rounds[number], sides).is_void:
            return number
    return max(rounds, default=0) + 1
