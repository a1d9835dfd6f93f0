"""The last part of the final check: which changes carry a proven gain, and the smallest configuration that keeps it.

First all changes are screened, then a smaller configuration is compared with the best one (`policies/screening.py`).
The state is plain JSON that is stored with the study. Everything else follows from it and from the trials, so that a
process that is killed loses nothing, and trials may finish in any order or fail.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord
from service.policies.check import CheckResult, FinalCheck, interval_text, mostly_acceptable, percent_text
from service.policies.check_interval import Pair, most_share, without_waits
from service.policies.check_rounds import Round, begun, failures, further, is_hopeless, next_turns, open_rounds
from service.policies.screening import (
    COMPARED,
    MOST_UNITS,
    TOLERANCE,
    Changes,
    Effect,
    Kept,
    Run,
    Screening,
    Smallest,
    compare,
    next_run,
    screened,
)
from service.tuner.checking import rounds_of, run_of
from service.tuner.suggestion import Suggestion

_MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class State:
    """The present part: the screening, the comparison of the units `keep` with all units, or the end.

    `first` and `since` are the numbers of the first trial of the screening and of this comparison. `smallest` is the
    smallest configuration so far, and `found` and `trials` are the result.
    """

    first: int
    keep: Kept | None = None
    since: int = 0
    over: bool = False
    trials: int = 0
    found: tuple[Effect, ...] = ()
    smallest: Smallest | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `parse` makes an equal state."""
        return asdict(self)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> State:
        """Return the state that `to_json` has given."""
        return cls(
            first=data["first"],
            keep=None if data["keep"] is None else tuple(data["keep"]),
            since=data["since"],
            over=data["over"],
            trials=data["trials"],
            found=tuple(Effect(tuple(one["names"]), one["effect"], one["low"], one["high"]) for one in data["found"]),
            smallest=None if data["smallest"] is None else Smallest(**data["smallest"]),
        )


@dataclass(frozen=True, slots=True)
class ParameterEffect:
    """The effect of one changed parameter, as a share of the default's value, from `low` to `high`.

    `default` is None if the parameter is inactive in the default configuration. `together`: the other parameters whose
    changes were kept and returned with this one, so that the effect is theirs as well.
    """

    name: str
    default: Scalar | None
    found: Scalar
    effect: float
    low: float
    high: float
    matters: bool
    together: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effects:
    """The parameters that carry a proven gain, and the smallest configuration that keeps it; None if there is none.

    `trials` have measured this. `tolerance`: the largest share of the gain that the smallest configuration may lose.
    """

    text: str
    trials: int
    tolerance: float
    parameters: tuple[ParameterEffect, ...]
    smallest: Smallest | None = None


@dataclass(frozen=True)
class Elimination:
    """The search for the changes that matter, for one study and its best configuration.

    `open` are the trials that wait for a result, and `checked` is the result of the final check that precedes this.
    """

    problem: Problem
    policy: FinalCheck
    seed: int
    best: Configuration
    checked: CheckResult
    finished: Sequence[TrialRecord]
    open: Sequence[TrialRecord] = ()

    @cached_property
    def changes(self) -> Changes:
        """The changes, in few enough units for the runs of the screening to separate them."""
        most = screened(MOST_UNITS + 1, self.policy.effects) - 1 if self.policy.effects else 1
        return Changes(self.problem.space, self.best, most)

    def begin(self, number: int) -> State | None:
        """Return the state at the beginning, with the number of the next trial; None if there is nothing to find.

        A single change carries the whole gain, so no trial is needed.
        """
        if not self.policy.effects or not self.checked.proven or not self.changes.units:
            return None
        if len(self.changes.units) > 1 or len(self.changes.units[0]) > 1:
            return State(number)
        only = Effect(self.changes.units[0], self.checked.gain, self.checked.low, self.checked.high)
        return State(number, over=True, found=(only,))

    def next(self, state: State, count: int) -> list[Configuration]:
        """Return up to `count` configurations to measure now, in the order of `next_runs`."""
        return [one.configuration for one in self.next_runs(state, count)]

    def next_runs(self, state: State, count: int, *, most_open: int | None = None) -> list[Suggestion]:
        """Return up to `count` runs to make now; none while the open ones are enough.

        The runs of a comparison are in rounds, of which `most_open` may be open at once.
        """
        if state.over:
            return []
        if state.keep is not None:
            return self._to_compare(state, state.keep, count, most_open)
        return [Suggestion(one, "check") for one in self._to_screen(state, count)]

    def spared(self, state: State) -> list[int]:
        """Return the numbers of the waiting trials of a comparison that are no longer needed: their round is void."""
        if state.keep is None:
            return []
        rounds = self._rounds(state, state.keep, [*self.finished, *self.open])
        is_over = bool(failures(rounds, 1)) or is_hopeless(rounds)
        void = {one.number for one in rounds if one.is_void or is_over}
        waiting = [trial for trial in self.open if trial.state == TrialState.REQUESTED]
        return [trial.number for trial in waiting if trial.round is not None and trial.round in void]

    def advance(self, state: State, number: int) -> State:
        """Return the state after the last trial of a part has finished. `number`: the next trial's.

        If the smaller configuration loses a comparison, the next one has more changes. If it wins, the changes that
        certainly matter are compared alone, if they are fewer.
        """
        keep, left = state.keep, self.policy.effects - self._begun(state.first)
        screening = Screening.of(self._runs(state))
        smallest = None if keep is None else self._compared(state, keep)
        if keep is not None and smallest is not None and smallest.is_enough:
            found = screening.effects(self.changes.units, self.policy.level)
            chosen = tuple(kept and one.low > 0 for kept, one in zip(keep, found, strict=True))
            if not any(chosen) or sum(self.changes.extended(chosen, screening.order)) >= sum(keep):
                return self._over(state, smallest)
        elif state.smallest is not None:
            return self._over(state, state.smallest)
        else:
            smallest, chosen = None, screening.choose(keep)
        chosen = self.changes.extended(chosen, screening.order)
        if all(chosen) or left < COMPARED:
            return self._over(state, smallest)
        return State(state.first, chosen, number, smallest=smallest)

    def _over(self, state: State, smallest: Smallest | None) -> State:
        runs = self._runs(state)
        # Without a single run between the default and the best, nothing separates the changes.
        known = any(len({True, False} & set(run.kept)) == 2 for run in runs)
        found = Screening.of(runs).effects(self.changes.units, self.policy.level) if known else []
        return State(state.first, state.keep, state.since, True, self._begun(state.first), tuple(found), smallest)

    def _to_screen(self, state: State, count: int) -> list[Configuration]:
        ahead = screened(len(self.changes.units), self.policy.effects) - self._begun(state.first)
        taken = [run.kept for run in self._runs(state)]
        taken += [self.changes.kept(trial.configuration) for trial in self._since(self.open, state.first)]
        begun = self._begun(state.first)
        found: list[Configuration] = []
        while len(found) < min(count, ahead):
            drawn = next_run(self.changes, taken, (self.seed, begun + len(found)))
            if drawn is None:
                break
            found.append(drawn)
            taken.append(self.changes.kept(drawn))
        return found

    def _to_compare(self, state: State, keep: Kept, count: int, most_open: int | None) -> list[Suggestion]:
        """Return the next runs of the comparison, in rounds as in the check itself."""
        sides = self._sides(keep)
        rounds = self._rounds(state, keep, [*self.finished, *self.open])
        if failures(rounds, 1) or is_hopeless(rounds):
            # The smaller configuration cannot work, or is too slow.
            return []
        used, most = (0, 1), COMPARED
        if begun(rounds) >= COMPARED and not open_rounds(rounds, used):
            found = self._compared(state, keep)
            # The comparison goes on until its values show whether the loss is within the tolerance.
            undecided = found is None or (not found.is_enough and found.kept_high >= 1 - TOLERANCE)
            most = begun(rounds) + 2 * undecided
        left = self.policy.effects - self._begun(state.first) + begun(rounds)
        first = 1 + max((one.round or 0 for one in self._since([*self.finished, *self.open], 0)), default=0)
        turns = next_turns(
            rounds,
            used,
            sides=2,
            seed=self.seed,
            count=count,
            new=further(rounds, used, min(most, left)),
            most_open=most_open,
            first=max(first, 1 + max((one.number for one in rounds), default=0)),
        )
        return [Suggestion(sides[turn.side], "check", turn.round) for turn in turns]

    def _compared(self, state: State, keep: Kept) -> Smallest | None:
        rounds = self._rounds(state, keep, self.finished)
        pair = Pair.of(rounds, 1, self.policy.level)
        change = pair.compare(0, self.policy.level)
        if change is None or not mostly_acceptable(sum(run.broken for run in pair.after), len(pair.after)):
            return None
        best = statistics.median(run.values[0] for run in pair.before)
        return compare(self._sides(keep)[1], self.checked, change.gain, best)

    def _sides(self, keep: Kept) -> list[Configuration]:
        """Return the configurations of a comparison: the best one takes the place of the default."""
        smaller = self.changes.configuration(keep)
        assert smaller is not None
        return [self.best, smaller]

    def _rounds(self, state: State, keep: Kept, trials: Sequence[TrialRecord]) -> list[Round]:
        return rounds_of(self.problem, self._sides(keep), self._since(trials, state.since))

    def _runs(self, state: State) -> list[Run]:
        """Return the runs of the check, of the screening and of all comparisons.

        They are corrected for waiting, and the most disturbed ones are left out, as in the check itself.
        """
        key = self.problem.space.key
        ends = {key(self.problem.space.default()), key(self.best)}
        every = [
            (trial, run_of(self.problem, trial))
            for trial in self.finished
            if trial.origin == "check"
            and trial.number > self.policy.after
            and trial.state == TrialState.COMPLETED
            and (trial.number >= state.first or key(trial.configuration) in ends)
        ]
        most = most_share([run for _, run in every])
        quiet = [(trial, run) for trial, run in every if (run.share or 0.0) <= most]
        # A regression needs more runs than units.
        kept = quiet if len(quiet) >= max(COMPARED, len(self.changes.units) + 2) else every
        values = without_waits([run for _, run in kept], 0)
        return [
            Run(self.changes.kept(trial.configuration), value, run.machine)
            for (trial, run), value in zip(kept, values, strict=True)
        ]

    def _begun(self, first: int) -> int:
        return len(self._since(self.finished, first)) + len(self._since(self.open, first))

    def _since(self, trials: Sequence[TrialRecord], first: int) -> list[TrialRecord]:
        return [trial for trial in trials if trial.origin == "check" and trial.number >= first]


def describe(state: State, problem: Problem, best: Configuration, level: float) -> Effects:
    """Return the result in the words and numbers that all readers see. `best`: the configuration of the check."""
    space = problem.space
    default = space.default()
    parameters = tuple(
        ParameterEffect(
            name,
            default.get(name),
            best[name],
            one.effect,
            one.low,
            one.high,
            one.matters,
            tuple(other for other in one.names if other != name),
        )
        for one in state.found
        for name in one.names
        if name in best
    )
    # The space may have changed since.
    smallest = state.smallest if state.smallest and space.inside(state.smallest.params) is not None else None
    return Effects(_text(parameters, smallest, level), state.trials, TOLERANCE, parameters, smallest)


def _text(parameters: Sequence[ParameterEffect], smallest: Smallest | None, level: float) -> str:
    count = len(parameters)
    if smallest is not None:
        kept = [one.name for one in parameters if smallest.params.get(one.name) == one.found]
        interval = interval_text(smallest.kept_low, smallest.kept_high, level)
        keep = f"{len(kept)} of {count} changes {'keeps' if len(kept) == 1 else 'keep'}"
        return f"{keep} {percent_text(smallest.kept)} % of the gain{interval}: {_names(kept)}"
    if not parameters:
        return "the constraints allow nothing between the default and the best configuration"
    if count == 1:
        return f"the only change carries the gain: {parameters[0].name}"
    matter = [one.name for one in parameters if one.low > 0]
    none = f"no smaller set of the {count} changes was shown to keep the gain"
    return f"{none}; these matter: {_names(matter)}" if matter else none


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
