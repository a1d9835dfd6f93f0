"""The resampling of a study with `stability:`: which configuration is measured on a further node, and when."""

from __future__ import annotations

from dataclasses import replace

from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies.stages import FINALISTS, Stages

PROBLEM = Problem.build(
    Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)]), [Objective("s", "minimize", "s")], noisy=True
)


class Search:
    """A search whose trials end at once; `time` of a configuration on the node with this number."""

    def __init__(self, settings: Stability, budget: int | None = None, nodes: int = 10) -> None:
        self.policy = Stages(PROBLEM, settings, budget=budget)
        self.trials: list[TrialRecord] = []
        self.nodes = nodes

    def time(self, x: float, node: int) -> float:
        return 10.0 - 5.0 * x

    def run(self, x: float, origin: str = "suggested") -> None:
        own = [trial for trial in self.trials if trial.configuration == {"x": x}]
        node = len(own) % self.nodes
        metrics = {"s": self.time(x, node)}
        trial = TrialRecord(len(self.trials) + 1, {"x": x}, TrialState.COMPLETED, metrics, origin=origin)
        self.trials.append(replace(trial, agent="a", node=f"n{node}"))
        self.policy.update(self.trials[-1:])

    def again(self, left: int | None = None, pending: int = 0) -> Configuration | None:
        waiting = [TrialRecord(0, {"x": 0.5}, TrialState.REQUESTED, {}) for _ in range(pending)]
        return self.policy.again(pending=waiting, predict=lambda _: None, left=left)

    def go_on(self, left: int | None = None) -> list[float]:
        """Run what the policy wants until it wants nothing, and return it."""
        found: list[float] = []
        while (one := self.again(left)) is not None:
            found.append(float(one["x"]))
            self.run(found[-1], "replicate")
            assert len(found) < 200
        return found


def test_only_the_best_go_to_the_second_stage_and_the_default_goes_with_them() -> None:
    search = Search(Stability((1, 3)))
    for x in (0.0, 0.1, 0.2, 0.3):
        search.run(x)
    assert search.go_on() == []
    search.run(0.4)
    # One of four configurations may go on, which are 30 %: the best one. The default comes first.
    assert search.go_on() == [0.0, 0.0, 0.4, 0.4]


def test_a_configuration_goes_through_all_stages() -> None:
    search = Search(Stability((1, 2, 4)))
    for place in range(20):
        search.run(place / 20)
    found = search.go_on()
    assert found.count(0.95) == 3
    assert found.count(0.0) == 3
    assert found.count(0.9) == found.count(0.85) == 1


def test_an_unstable_configuration_goes_no_further() -> None:
    class Unstable(Search):
        def time(self, x: float, node: int) -> float:
            return super().time(x, node) * (3.0 if x > 0.9 and node == 1 else 1.0)

    search = Unstable(Stability((1, 2, 10)))
    for place in range(20):
        search.run(place / 20)
    found = search.go_on()
    assert found.count(0.95) == 1
    counts = {one.configuration["x"]: one.runs for one in search.policy.assessment.standings.values()}
    assert [x for x, runs in counts.items() if runs == 10 and x != 0.0]


def test_suggestions_of_the_same_configuration_begin_no_stage() -> None:
    search = Search(Stability((1, 3, 10)))
    search.run(0.0)
    search.run(0.5)
    search.run(0.5)
    assert search.again() is None


def test_trials_that_run_count() -> None:
    search = Search(Stability((2, 3)))
    search.run(0.5)
    assert search.again() == {"x": 0.5}
    assert search.again(pending=1) is None


def test_the_last_trials_of_the_budget_complete_the_last_stage() -> None:
    search = Search(Stability((1, 3, 10)), budget=60)
    for place in range(8):
        search.run(place / 10)
    while len(search.trials) < 60:
        one = search.again()
        search.run(
            len(search.trials) / 100 if one is None else float(one["x"]), "suggested" if one is None else "replicate"
        )
    counts = [one.runs for one in search.policy.assessment.standings.values()]
    assert sum(count >= 10 for count in counts) >= FINALISTS


def test_with_times_the_last_stage_comes_at_the_end() -> None:
    search = Search(Stability((1, 2, 4), times=86400.0))
    for place in range(20):
        search.run(place / 20)
    assert max(search.go_on().count(one) for one in (0.0, 0.9, 0.95)) == 1
    assert set(search.go_on(left=1)) == {0.0, 0.95, 0.9, 0.85}


def test_a_node_that_comes_again_does_not_complete_the_last_stage() -> None:
    search = Search(Stability((1, 4)), nodes=2)
    for place in range(8):
        search.run(place / 10)
    search.go_on()
    # Both nodes that there are were used: more runs would say nothing of further nodes.
    assert max(one.runs for one in search.policy.assessment.standings.values()) == 4
