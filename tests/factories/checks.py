"""Final checks in this process: their rounds, and trials that are run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.policies.check_rounds import Outcome, Round, Run
from service.tuner.method import Method
from service.tuner.tuner import Tuner

DEFAULT: Configuration = {"x": 0.0}
BEST: Configuration = {"x": 1.0}


def problem_of(*metrics: str, unit: str = "s", outcome_constraints: Sequence[str] = ()) -> Problem:
    """Return a problem with these metrics, "s" if there is none, all of which are times to minimise."""
    space = Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)])
    objectives = [Objective(metric, "minimize", unit) for metric in metrics or ("s",)]
    return Problem.build(space, objectives, outcome_constraints=outcome_constraints)


def run(value: float, *, wait: float | None = None, share: float | None = None, machine: str = "") -> Run:
    """Return a run with this value of the only objective."""
    return Run(Outcome.MEASURED, (value,), (wait,), share, machine)


def rounds_of(*sides: Sequence[float | Run]) -> list[Round]:
    """Return the rounds with these runs of the default and others, or with runs that have these values.

    The last one may be incomplete.
    """
    rounds: dict[int, dict[int, Run]] = {}
    for side, given in enumerate(sides):
        for number, one in enumerate(given, start=1):
            rounds.setdefault(number, {})[side] = one if isinstance(one, Run) else run(one)
    return [Round(number, rounds[number]) for number in sorted(rounds)]


@dataclass(frozen=True)
class Told:
    """The result of a run: a value for each metric, or one for all; no value if its state is a failure."""

    value: float | dict[str, float] | None = None
    doubtful: bool = False
    state: TrialState = TrialState.COMPLETED
    interference: Interference | None = None


@dataclass
class Checking:
    """A final check whose runs `ran` tells, from the side (0: the default) and the number of the trial.

    Up to `at_once` trials are open at once. The oldest of them ends first, on a machine with the name `machine`.
    """

    ran: Callable[[int, int], Told]
    policy: FinalCheck = field(default_factory=lambda: FinalCheck(max_trials=20, effects=0))
    at_once: int = 1
    problem: Problem = field(default_factory=problem_of)
    best: Sequence[Configuration] = (BEST,)
    seed: int = 0
    machine: Callable[[int], str] = lambda number: ""

    def __post_init__(self) -> None:
        self.tuner = Tuner(self.problem, Method(algorithm="random", seed=self.seed, final_check=self.policy))
        self.order: list[int] = []
        self.trials: list[TrialRecord] = []
        sides = [self.problem.space.default(), *self.best]
        pending: list[TrialRecord] = []
        number = 0
        while True:
            for found in self.tuner.check_runs(self.best, self.at_once - len(pending), pending, self.policy):
                number += 1
                asked = TrialRecord(number, found.configuration, TrialState.REQUESTED, {}, number, origin="check")
                pending.append(replace(asked, round=found.round, agent=self.machine(found.round or 0)))
            if not pending:
                break
            trial = pending.pop(0)
            side = sides.index(trial.configuration)
            told = self.ran(side, trial.number)
            metrics = told.value if isinstance(told.value, dict) else dict.fromkeys(self.problem.metrics, told.value)
            kept = {name: value for name, value in metrics.items() if value is not None}
            self.order.append(side)
            done = replace(trial, state=told.state, metrics=kept, doubtful=told.doubtful)
            self.trials.append(replace(done, interference=told.interference))
            self.tuner.update(self.trials[-1:])

    def counts(self) -> list[int]:
        """Return the number of runs of each side."""
        return [self.order.count(side) for side in range(len(self.best) + 1)]
