"""The resampling of a study with `stability:`: few configurations are measured on many nodes.

Each configuration is measured on the nodes of the first stage. The best of those that have completed a stage are
measured on further nodes, up to the next stage [freischuetz-2025] [li-2020]. What a configuration is worth follows from
all nodes so far (`policies/stability.py`), and an unstable one goes no further. The default takes part in each stage
that another configuration has begun, because the gain is over the default.

The last trials of the budget complete the last stage of the best configurations, one after the other. If the last
stage has to wait for another day, it comes then only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies.resampling import Candidate, Predict, Resampling
from service.policies.stability import Assessment, Standing, assess, machine_of

# The share of the configurations that have completed a stage and go on to the next one.
SHARE = 0.3
# How many stable configurations the search takes to the last stage before it ends, and the largest part of the budget
# that it keeps for that.
FINALISTS, _MOST_KEPT = 3, 0.5
# A configuration that has met the same node again is measured so many times more often at most, to meet other nodes.
_MOST_AGAIN = 1.5


class Stages(Resampling):
    """Measures the best configurations on further nodes, stage by stage."""

    def __init__(
        self, problem: Problem, settings: Stability, *, seed: int = 0, budget: int | None = None, start: int = 0
    ) -> None:
        super().__init__(problem, seed=seed, options={}, budget=budget, start=start)
        self.settings = settings
        self._default = problem.space.key(problem.space.default())
        self._trials: list[TrialRecord] = []
        self._assessed: Assessment | None = None
        self._machines: set[str] = set()
        # The number of replicates of a configuration with a result, by its key.
        self.replicates: dict[str, int] = {}

    @property
    def assessment(self) -> Assessment:
        """The estimates by all trials so far."""
        if self._assessed is None:
            self._assessed = assess(self.problem, self.settings, self._trials)
        return self._assessed

    @property
    def most_repeats(self) -> int:
        """The number of trials that complete the last stage of enough configurations and of the default."""
        return (FINALISTS + 1) * self.settings.most_nodes

    def update(self, finished: Sequence[TrialRecord]) -> None:
        super().update(finished)
        self._trials += finished
        self._assessed = None
        for trial in finished:
            if trial.state == TrialState.COMPLETED and (machine := machine_of(trial)):
                self._machines.add(machine)
            if trial.origin == "replicate" and trial.state != TrialState.FAILED:
                key = self.problem.space.key(trial.configuration)
                self.replicates[key] = self.replicates.get(key, 0) + 1

    def again(
        self, *, pending: Sequence[TrialRecord], predict: Predict, left: int | None = None
    ) -> Configuration | None:
        """Return the configuration to measure on a further node; None if the algorithm should suggest one.

        `left`: the search is about to end, and only its last stage counts.
        """
        found = _Begun(self, pending)
        is_ending = left is not None or self._is_ending(found)
        if not is_ending and len(self.measured) < self.start:
            return None
        # A configuration goes on until the stage is complete that it has begun.
        for key, one in self.measured.items():
            if self._goes_on(key, one) and self._lacks(key, one, found.stage(key), found):
                return one.configuration
        if is_ending and (key := self._finalist(found)):
            return self.measured[key].configuration
        return None if left is not None else self._promoted(found)

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        """Return None: `again` decides."""
        return None

    def _goes_on(self, key: str, one: Candidate) -> bool:
        """Return whether further runs of a configuration may be of use."""
        if one.closed or not one.values:
            return False
        return key == self._default or not self._standing(key).unstable

    def _standing(self, key: str) -> Standing:
        return self.assessment.standings[key]

    def _lacks(self, key: str, one: Candidate, stage: int, found: _Begun) -> bool:
        """Return whether a configuration needs another run to complete a stage."""
        runs = len(one.values) + found.waiting.get(key, 0)
        nodes = self.settings.nodes[stage]
        if runs < nodes or nodes == 1 or stage < self._last:
            return runs < nodes
        # Runs on a node that it has met before do not say more about nodes.
        met = set(self._standing(key).nodes)
        others = self._machines - met
        return len(met) + found.waiting.get(key, 0) < nodes and bool(others) and runs < _MOST_AGAIN * nodes

    @property
    def _last(self) -> int:
        return len(self.settings.nodes) - 1

    def _able(self, found: _Begun) -> list[str]:
        """Return the configurations that may go on, the best first; the default is not one of them."""
        able = [key for key, one in self.measured.items() if key != self._default and self._goes_on(key, one)]
        able = [key for key in able if 2 * self.measured[key].broken < len(self.measured[key].values)] or able
        return sorted(able, key=lambda key: self._standing(key).value)

    def _promoted(self, found: _Begun) -> Configuration | None:
        """Return the best configuration that has earned its next stage, or the default if it has to begin it too."""
        able = self._able(found)
        last = self._last if self.settings.times is None else self._last - 1
        for stage in reversed(range(last)):
            begun = [found.stage(key) > stage for key in self.measured if key != self._default]
            complete = [
                key
                for key in able
                if found.stage(key) > stage or len(self.measured[key].values) >= self.settings.nodes[stage]
            ]
            room = int(SHARE * len(complete))
            # The values of those that have gone on are less lucky now, and must not be replaced for that.
            if sum(begun) < room:
                for key in complete[:room]:
                    if found.stage(key) <= stage:
                        return self.measured[self._or_default(key, stage + 1, found)].configuration
        return None

    def _or_default(self, key: str, stage: int, found: _Begun) -> str:
        """Return the default in place of a configuration, if it has not begun a stage that others begin."""
        one = self.measured.get(self._default)
        is_due = one is not None and self._goes_on(self._default, one) and found.stage(self._default) < stage
        return self._default if is_due else key

    def _is_ending(self, found: _Begun) -> bool:
        """Return whether the rest of the budget is just enough for the last stage of the best configurations."""
        if self.budget is None or self._last == 0:
            return False
        left = self.budget - self.done - sum(found.waiting.values())
        able = self._able(found)
        begun = sum(found.stage(key) == self._last for key in able)
        further = [key for key in able if found.stage(key) < self._last][: max(FINALISTS - begun, 0)]
        if self._or_default("", self._last, found):
            further.append(self._default)
        wanted = sum(max(self.settings.most_nodes - found.runs(key), 0) for key in further)
        return left <= min(wanted, _MOST_KEPT * self.budget)

    def _finalist(self, found: _Begun) -> str:
        """Return the best configuration that has not begun the last stage; empty if enough have."""
        able = self._able(found)
        if sum(found.stage(key) == self._last for key in able) >= FINALISTS:
            return ""
        further = next((key for key in able if found.stage(key) < self._last), "")
        return self._or_default(further, self._last, found)


class _Begun:
    """The trials that wait for a result, and the stage that has begun, by configuration."""

    def __init__(self, policy: Stages, pending: Sequence[TrialRecord]) -> None:
        self._policy = policy
        self._replicates = dict(policy.replicates)
        self.waiting: dict[str, int] = {}
        for trial in pending:
            key = policy.problem.space.key(trial.configuration)
            self.waiting[key] = self.waiting.get(key, 0) + 1
            if trial.origin == "replicate":
                self._replicates[key] = self._replicates.get(key, 0) + 1

    def runs(self, key: str) -> int:
        """Return the number of runs with a value or without a result yet."""
        one = self._policy.measured.get(key)
        return self.waiting.get(key, 0) + (0 if one is None else len(one.values))

    def stage(self, key: str) -> int:
        """Return the stage that a configuration has begun. Only replicates begin the second one and those after it.

        The algorithm may suggest a configuration twice, which is no reason to measure it on many nodes.
        """
        nodes, runs = self._policy.settings.nodes, self._replicates.get(key, 0) + 1
        return next((place for place, most in enumerate(nodes) if runs <= most), len(nodes) - 1)
