"""Pairs of production jobs: what their ends mean and cost, and when a trial of such pairs ends.

A pair has a job with a candidate and one with the settings in force. A coin has decided which of them is which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trimtab_components.pairs import Evidence

# Schedulers count whole seconds, so a job of 0 s may have taken almost one.
_LEAST_SECONDS = 0.5
_HOUR = 3600.0
GUARD, MOST = "guard", "most"


class End(StrEnum):
    """The end of a job of a pair.

    LOST: its report has not come in time, or the scheduler has not confirmed it. UNUSED: the job has run without the
    settings that it was to get, or the second job of the pair never came.
    """

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    LOST = "LOST"
    UNUSED = "UNUSED"


@dataclass(frozen=True, slots=True)
class Run:
    """One job of a pair. `seconds` is its run time, where it has ended."""

    end: End
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a pair that has ended.

    `effect`: the logarithm of the ratio of the run times; None if the pair is no evidence. `broken`: the candidate has
    failed where the settings in force have not. `cost`: node-hours that the candidate has lost.
    """

    effect: float | None
    broken: bool
    cost: float


def meaning(candidate: Run, incumbent: Run, *, nodes: int, limit: float) -> Meaning:
    """Return what a pair means. `limit` is the time limit of its jobs in seconds.

    A candidate costs what it took longer, if both jobs have completed. Otherwise all its time is lost: nobody knows how
    long it would have taken. A lost report counts with the time limit. Gains give no credit.
    """
    if candidate.end is End.UNUSED:
        return Meaning(None, False, 0.0)
    if candidate.end is End.LOST:
        return Meaning(None, False, nodes * limit / _HOUR)
    if candidate.end is End.COMPLETED and incumbent.end is End.COMPLETED:
        more = max(0.0, candidate.seconds - incumbent.seconds)
        return Meaning(effect(candidate.seconds, incumbent.seconds), False, nodes * more / _HOUR)
    # If both fail, the application is at fault.
    broken = candidate.end is End.FAILED and incumbent.end is not End.FAILED
    return Meaning(None, broken, nodes * candidate.seconds / _HOUR)


def effect(candidate: float, incumbent: float) -> float:
    """Return the logarithm of the ratio of two run times in seconds; below 0 the candidate is faster."""
    return math.log(max(candidate, _LEAST_SECONDS)) - math.log(max(incumbent, _LEAST_SECONDS))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The state of a trial: how it ends (empty: it goes on), the evidence, and how many pairs were looked at."""

    decision: str
    evidence: Evidence
    looked_at: int


def judge(pairs: Sequence[Meaning | None], *, deviation: float, min_gain: float, least: int, most: int) -> Judgement:
    """Return whether a trial ends by its pairs, which are in the order in which they began; None for an open one.

    The test looks at no pair after one that is open. Otherwise pairs of quick jobs would be looked at first, and the
    coin would not be fair any more among those that are known.
    """
    evidence = Evidence(deviation)
    broken = any(one is not None and one.broken for one in pairs)
    for place, one in enumerate(pairs):
        if one is None:
            return Judgement(GUARD if broken else "", evidence, place)
        if one.effect is None:
            continue
        evidence.add(one.effect)
        if decision := evidence.decide(min_gain, least, most):
            return Judgement(GUARD if broken else decision, evidence, place + 1)
    # A trial whose pairs are mostly no evidence must end too.
    over = MOST if len(pairs) >= 2 * most else ""
    return Judgement(GUARD if broken else over, evidence, len(pairs))


def may_be_open(ended: int) -> int:
    """Return how many pairs of a trial may be open at once, after this many have ended."""
    return max(1, ended)
