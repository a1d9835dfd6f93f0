"""The cost of the blocks of a live trial, and whether its budgets allow another one. Standard library only."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from trimtab_agent.supervisor.ledger import Ledger
from trimtab_agent.supervisor.place import Place, Samples

LEDGER = ".ledger"
# Seconds of a switch before one was measured, and the switches until a failure is over: back, and two others.
FIRST_SWITCH, SWITCHES = 1.0, 3
# Seconds between two looks at the guards.
LOOK_INTERVAL = 0.1

# Readings of some time, by instance.
Seen = Mapping[str, Samples]


class EndedError(Exception):
    """The trial ends before its test has decided: by its budget or its window. The pairs so far count."""

    def __init__(self, decision: str, reason: str) -> None:
        self.decision, self.reason = decision, reason
        super().__init__(reason)


@dataclass
class _Open:
    """A block with the candidate whose cost is not known yet, and the most that it can cost."""

    name: str
    treated: Sequence[Place]
    began: float
    most: Mapping[str, float]
    # The same begin on the monotonic clock.
    since: float = field(default_factory=time.monotonic)
    # What was read in it, and its seconds, after its end.
    seen: Seen | None = None
    seconds: float = 0.0


class Costs:
    """The costs of one trial, by budget. `budgets` are those of its plan."""

    def __init__(self, trial: str, budgets: Sequence[Mapping[str, Any]], places: Sequence[Place]) -> None:
        self._trial, self._study = trial, trial.rpartition("/")[0]
        self._budgets, self._places = budgets, places
        self._ledgers: dict[str, Ledger] = {}
        self._open: list[_Open] = []
        # The share of slow requests under the incumbent.
        self._usual: dict[str, float] = {}
        # What was lost, with blocks of earlier trials that no result has contained.
        self.spent: dict[str, float] = {}

    def load(self) -> None:
        """Read the ledgers of the instances, whose locks this process has.

        Raises:
            OSError: they cannot be read or written.
        """
        for place in self._places:
            self._ledgers[place.name] = Ledger(place.instance.path.with_suffix(LEDGER))
            self._ledgers[place.name].compact()
        # `reported` notes all of them. An earlier trial may have had its costs on another instance.
        before = [ledger.unreported(self._study) for ledger in self._ledgers.values()]
        self.spent = {one["name"]: sum(found.get(one["name"], 0.0) for found in before) for one in self._budgets}

    def learn(self, seen: Seen, places: Sequence[Place]) -> None:
        """Take the incumbent's share of slow requests from what was read on instances."""
        self._learn([(seen, place) for place in places])

    def begin(self, treated: Sequence[Place], began: float, seconds: float) -> None:
        """Write down a block of so many seconds with the candidate, and the most that it can cost, before it begins.

        Raises:
            OSError: the disk is full.
            EndedError: a total failure would exceed a budget.
        """
        self.expect_budget(treated, {})
        most = {one["name"]: self._worst(one, treated) for one in self._budgets}
        block = _Open(f"{self._trial} {began:.3f}", treated, began, most)
        self._write(block, seconds, most)
        self._open.append(block)

    def end(self, seen: Seen) -> None:
        """Note what was read in the block that was begun last."""
        block = self._open[-1]
        block.seen, block.seconds = seen, time.monotonic() - block.since

    def close(self, without: Sequence[tuple[Seen, Place]] = (), seen: Seen | None = None) -> None:
        """Write down what the open blocks have cost.

        Args:
            without: what was read under the incumbent in the same pair; none: as before it.
            seen: what was read in a block that has not ended.

        Raises:
            OSError: the disk is full.
        """
        if without:
            self._learn(without)
        while self._open:
            block = self._open[0]
            read = block.seen if block.seen is not None else seen or {}
            seconds = block.seconds or time.monotonic() - block.since
            costs = {}
            for budget in self._budgets:
                known = any(read.get(place.name, {}).get(budget["slow"]) for place in block.treated)
                costs[budget["name"]] = (
                    self._cost(budget, read, block.treated, seconds) if known else block.most[budget["name"]]
                )
                self.spent[budget["name"]] += costs[budget["name"]]
            del self._open[0]
            self._write(block, seconds, costs)

    def expect_budget(self, treated: Sequence[Place], seen: Seen) -> None:
        """Expect that a total failure of the candidate would still be within each budget.

        Raises:
            EndedError: it would not.
        """
        for budget in self._budgets:
            now = 0.0
            for block in self._open:
                read = block.seen if block.seen is not None else seen
                now += self._cost(budget, read, block.treated, block.seconds or time.monotonic() - block.since)
            left, worst = self._left(budget) - self.spent[budget["name"]] - now, self._worst(budget, treated)
            if left < worst:
                text = f"{left:.6g} of {budget['slow']} are left, and a total failure would cost {worst:.6g}"
                raise EndedError("budget", f"budget {budget['name']}: {text}")

    def exposure(self) -> float:
        """Return for how many of the last 24 hours' seconds settings of trials were in force on an instance."""
        return max(ledger.exposure() for ledger in self._ledgers.values())

    def load_of(self, seen: Sequence[Seen]) -> float:
        """Return the mean of what the first budget counts; 0 if it is unknown."""
        for budget in self._budgets:
            read = [one for each in seen for place in self._places for one in each[place.name][budget["of"]].values()]
            return statistics.fmean(read) if read else 0.0
        return 0.0

    def reported(self) -> None:
        """Note that a stored result contains all costs. A full disk leaves them for the next result."""
        with suppress(OSError):
            for ledger in self._ledgers.values():
                ledger.report(self._study)

    def _write(self, block: _Open, seconds: float, costs: Mapping[str, float]) -> None:
        # The cost is in the ledger of the first instance, whichever has the candidate.
        first = self._places[0]
        for place in {first.name: first, **{one.name: one for one in block.treated}}.values():
            self._ledgers[place.name].write(
                block.name,
                self._study,
                began=block.began,
                seconds=seconds if place in block.treated else 0.0,
                cost=costs if place is first else {},
            )

    def _learn(self, without: Sequence[tuple[Seen, Place]]) -> None:
        for budget in self._budgets:
            slow, count = (
                [one for seen, place in without for one in seen[place.name][budget[key]].values()]
                for key in ("slow", "of")
            )
            total = statistics.fmean(count) if count else 0.0
            self._usual[budget["name"]] = statistics.fmean(slow) / total if slow and total > 0 else 0.0

    def _cost(self, budget: Mapping[str, Any], seen: Seen, treated: Sequence[Place], seconds: float) -> float:
        """Return how many requests more than usual were slow. Gains give no credit."""
        total, usual = 0.0, self._usual.get(budget["name"], 0.0)
        for place in treated:
            slow, count = (list(seen.get(place.name, {}).get(budget[key], {}).values()) for key in ("slow", "of"))
            if slow:
                expected = usual * statistics.fmean(count) if count else 0.0
                total += seconds * max(0.0, statistics.fmean(slow) - expected)
        return total

    def _left(self, budget: Mapping[str, Any]) -> float:
        """Return how much may be lost. Before a study's first pair the service does not know it, which is below 0.

        It is then the allowed share of what is expected in a period, at the present rate of all instances.
        """
        if budget["left"] >= 0:
            return float(budget["left"])
        return float(budget["most"] * budget["period"] * self._rate(budget, self._places))

    def _rate(self, budget: Mapping[str, Any], places: Sequence[Place]) -> float:
        """Return how many requests arrive in a second, as the last readings say."""
        latest = [place.readings.latest(budget["of"]) for place in places if place.readings is not None]
        return sum(one[1] for one in latest if one is not None)

    def _worst(self, budget: Mapping[str, Any], treated: Sequence[Place]) -> float:
        """Return the cost of a total failure: all requests until a guard notices and the old settings are back."""
        live = self._places[0].live
        every = {one["name"]: one["every"] for one in live["readings"]}
        notice = max(one["seconds"] + every.get(one["metric"], 1.0) for one in live["guards"]) + LOOK_INTERVAL
        switches = SWITCHES * max(FIRST_SWITCH, *(place.slowest_switch for place in self._places))
        return float(self._rate(budget, treated) * (notice + switches))
