"""The rounds of a final check: one run of every side, one after the other on one machine, in a random order.

A side is a configuration: the default is side 0, and the configurations that are compared with it follow. A disturbance
that lasts longer than a run then affects all sides. The random order, and its reverse in the next round, keep a drift
or a cold first run from favouring one side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

# A side that has failed so often, and in more than half of its runs, is not measured any more.
_FAILURES, _LEAST_RUNS = 2, 4
# A check ends after so many void rounds in a row.
MOST_VOID = 3


class Outcome(StrEnum):
    """The end of a run, or that it has none yet.

    OPEN: it has no result yet. MEASURED: it has values. UNUSABLE: the configuration failed, or was too slow. FAILED:
    the machine failed.
    """

    OPEN = "open"
    MEASURED = "measured"
    UNUSABLE = "unusable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of one side. `values` are those of the objectives, times their signs.

    `waits`: by objective, the part of the run for which its processes waited for a CPU; None if it is unknown, and 0 if
    waiting does not change the objective. `share`: the share of the CPUs that other processes took; None if it is
    unknown. `machine`: the agent and the node. `broken`: the values break an outcome constraint. `reason`: why there
    are no values, for people.
    """

    outcome: Outcome
    values: tuple[float, ...] = ()
    waits: tuple[float | None, ...] = ()
    share: float | None = None
    machine: str = ""
    broken: bool = False
    reason: str = ""

    @property
    def is_finished(self) -> bool:
        """Return whether the run says something about its configuration."""
        return self.outcome in (Outcome.MEASURED, Outcome.UNUSABLE)


@dataclass(frozen=True, slots=True)
class Round:
    """A round of so many sides with the runs that it has, by side. `number`: larger for a later round."""

    number: int
    runs: Mapping[int, Run]
    sides: int = 2

    @property
    def is_void(self) -> bool:
        """Return whether the machine has failed the default's run or all others, so that nothing can be compared."""
        failed = [side for side, run in self.runs.items() if run.outcome is Outcome.FAILED]
        return 0 in failed or len(failed) == self.sides - 1

    def has(self, *sides: int) -> bool:
        """Return whether the round is not void, and each of these sides has a run that is finished."""
        return not self.is_void and all(side in self.runs and self.runs[side].is_finished for side in sides)

    def lacks(self, used: Sequence[int]) -> list[int]:
        """Return the sides that the round still needs a run of; none if it is void."""
        return [] if self.is_void else [side for side in used if side not in self.runs]


@dataclass(frozen=True, slots=True)
class Turn:
    """The next run to make: a side in a round."""

    round: int
    side: int


def order_of(seed: int, place: int, sides: int) -> list[int]:
    """Return the order of the sides in the round at this place, from 0; each second order reverses the one before."""
    drawn = [int(side) for side in np.random.default_rng([seed, place // 2]).permutation(sides)]
    return drawn[::-1] if place % 2 else drawn


def measured(rounds: Sequence[Round], side: int) -> list[Run]:
    """Return the runs of a side that have values, also those of void and incomplete rounds."""
    runs = [one.runs[side] for one in rounds if side in one.runs]
    return [run for run in runs if run.outcome is Outcome.MEASURED]


def failures(rounds: Sequence[Round], side: int) -> int:
    """Return in how many runs a configuration has failed."""
    return sum(side in one.runs and one.runs[side].outcome is Outcome.UNUSABLE for one in rounds)


def cause(rounds: Sequence[Round], side: int | None = None) -> str:
    """Return the most frequent reason of failed runs as the end of a sentence; empty if none is known.

    `side`: the configuration that has failed; None: those runs that the machine has failed.
    """
    runs = [run for one in rounds for place, run in one.runs.items() if side in (None, place)]
    outcome = Outcome.FAILED if side is None else Outcome.UNUSABLE
    reasons = Counter(run.reason for run in runs if run.outcome is outcome and run.reason)
    return f": {reasons.most_common(1)[0][0].rstrip('.')}" if reasons else ""


def finished(rounds: Sequence[Round], side: int) -> int:
    """Return how many runs of a configuration are finished."""
    return sum(side in one.runs and one.runs[side].is_finished for one in rounds)


def fails(rounds: Sequence[Round], side: int) -> bool:
    """Return whether a configuration fails so often that it is not measured any more.

    One of several that never works does not use up the trials of the others, whatever the cause.
    """
    failed, runs = failures(rounds, side), finished(rounds, side)
    if runs >= _LEAST_RUNS and failed >= _FAILURES and 2 * failed > runs:
        return True
    among = [one.runs[side].outcome for one in rounds if one.sides > 2 and side in one.runs]
    never = bool(side) and Outcome.MEASURED not in among
    return never and sum(one is not Outcome.OPEN for one in among) >= _FAILURES


def begun(rounds: Sequence[Round]) -> int:
    """Return the number of all runs."""
    return sum(len(one.runs) for one in rounds)


def is_hopeless(rounds: Sequence[Round]) -> bool:
    """Return whether the last rounds are all void, so that another one would not help."""
    last = rounds[-MOST_VOID:]
    return len(last) == MOST_VOID and all(one.is_void for one in last)


def open_rounds(rounds: Sequence[Round], used: Sequence[int]) -> int:
    """Return how many rounds need a run of these sides, or wait for the result of one."""
    return sum(any(run.outcome is Outcome.OPEN for run in one.runs.values()) or bool(one.lacks(used)) for one in rounds)


def further(rounds: Sequence[Round], used: Sequence[int], most: int) -> int:
    """Return how many new rounds of these sides fit into `most` runs, next to the rounds that have begun."""
    owed = sum(len(one.lacks(used)) for one in rounds)
    return max(0, most - begun(rounds) - owed) // max(len(used), 1)


def next_turns(
    rounds: Sequence[Round],
    used: Sequence[int],
    *,
    sides: int,
    seed: int,
    count: int,
    new: int,
    most_open: int | None = None,
    first: int | None = None,
) -> list[Turn]:
    """Return up to `count` next runs: those that the begun rounds lack, and then those of new rounds.

    Args:
        rounds: in the order of their numbers.
        used: the sides that are measured, of `sides` sides.
        new: how many rounds may begin.
        most_open: how many rounds may be open at once; None: any number.
        first: the number of the next new round; by default the one after the last.
    """
    found = [
        Turn(one.number, side)
        for place, one in enumerate(rounds)
        if (missing := one.lacks(used))
        for side in order_of(seed, place, sides)
        if side in missing
    ]
    if most_open is not None:
        new = min(new, most_open - open_rounds(rounds, used))
    number = first if first is not None else max((one.number for one in rounds), default=0) + 1
    for ahead in range(new):
        if len(found) >= count:
            break
        order = order_of(seed, len(rounds) + ahead, sides)
        found += [Turn(number + ahead, side) for side in order if side in used]
    return found[: max(count, 0)]
