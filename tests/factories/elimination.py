"""Simulated studies whose final check asks which changes carry the gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.tuner.checking import rounds_of
from service.tuner.elimination import Effects, Elimination, State, describe

Truth = Callable[[Configuration], float]
# The whole gain, as a logarithm: the best configuration takes 67 % of the default's time.
GAIN = 0.4


def problem_of(count: int, goal: str = "minimize", constraints: Sequence[str] = (), **conditions: object) -> Problem:
    parameters = [
        {"name": f"p{place}", "type": "int", "min": 0, "max": 1, "default": 0, **_condition(conditions, f"p{place}")}
        for place in range(count)
    ]
    space = {"parameters": parameters, "constraints": list(constraints)}
    return Problem.from_json({"space": space, "objectives": [{"metric": "value", "goal": goal}]})


def _condition(conditions: Mapping[str, object], name: str) -> dict[str, object]:
    return {"condition": {"parent": conditions[name], "values": [1]}} if name in conditions else {}


class Checked:
    """A simulated study whose final check has begun."""

    def __init__(self, problem: Problem, truth: Truth, seed: int, noise: float = 0.04, **policy: int) -> None:
        self.problem, self.truth, self.noise = problem, truth, noise
        self.generator = np.random.default_rng(seed)
        self.policy, self.seed = FinalCheck(**policy), seed
        self.best: Configuration = dict.fromkeys(problem.space.names(), 1)
        self.trials: list[TrialRecord] = []
        sides = [problem.space.default(), self.best]
        while turns := self.policy.turns(rounds_of(problem, sides, self.trials), 2, seed, 1):
            self.run(sides[turns[0].side])
        self.checked = self.policy.result(rounds_of(problem, sides, self.trials), problem.objectives[0])

    @property
    def proven(self) -> bool:
        """Return whether the check has proven the gain."""
        return self.checked.proven

    def run(self, configuration: Configuration, state: TrialState = TrialState.COMPLETED) -> TrialRecord:
        """Measure a configuration, with 5 % of slow runs."""
        slow = 5 * self.noise * abs(self.generator.standard_normal()) * (self.generator.random() < 0.05)
        advance = self.truth(configuration) - self.noise * self.generator.standard_normal() - slow
        value = 100 * math.exp(-float(self.problem.signs()[0]) * advance)
        metrics = {"value": value} if state == TrialState.COMPLETED else {}
        trial = TrialRecord(len(self.trials) + 1, configuration, state, metrics, origin="check")
        self.trials.append(trial)
        return trial

    def ask(self, opened: Sequence[TrialRecord] = ()) -> Elimination:
        numbers = {trial.number for trial in opened}
        finished = [trial for trial in self.trials if trial.number not in numbers]
        return Elimination(self.problem, self.policy, self.seed, self.best, self.checked, finished, opened)

    def to_the_end(self, state_of: Callable[[Configuration], TrialState] = lambda _: TrialState.COMPLETED) -> State:
        state = self.ask().begin(len(self.trials) + 1)
        assert state is not None
        while not state.over:
            # What is stored is enough to go on.
            state = State.parse(state.to_json())
            found = self.ask().next(state, 1)
            if found:
                assert self.problem.space.inside(found[0]) == found[0]
                self.run(found[0], state_of(found[0]))
            else:
                state = self.ask().advance(state, len(self.trials) + 1)
        return state

    def told(self, state: State) -> Effects:
        return describe(state, self.problem, self.best, self.policy.level)


def carriers(*names: str) -> Truth:
    return lambda configuration: GAIN * sum(bool(configuration.get(name)) for name in names) / len(names)
