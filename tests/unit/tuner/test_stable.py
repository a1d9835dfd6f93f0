"""Tuners with `stability:`: what they learn from, what they recommend and what they say about nodes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.stable import conditions_of, counted, unstable_ones, without_unstable
from service.tuner.tuner import Tuner
from service.tuner.verdict import Finding, Level, conclude

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)])
PROBLEM = Problem.build(SPACE, [Objective("s", "minimize", "s")], noisy=True)
STABILITY = Stability((1, 3, 6))


def studied(values: dict[float, list[float]], noise: float = 0.01) -> Tuner:
    """Return a tuner with a run of each configuration on each node."""
    rng = np.random.default_rng(2)
    runs = [(x, node, value) for x, on_nodes in values.items() for node, value in enumerate(on_nodes)]
    tuner = Tuner(PROBLEM, Method(algorithm="random", stability=STABILITY))
    tuner.update(
        [
            TrialRecord(
                number, {"x": x}, TrialState.COMPLETED, {"s": value * math.exp(noise * rng.standard_normal())},
                agent="a", node=f"n{node}",
            )
            for number, (x, node, value) in enumerate(runs, start=1)
        ]
    )  # fmt: skip
    return tuner


UNSTABLE = {0.0: [10.0] * 6, 0.4: [8.0] * 6, 0.7: [5.0] * 5 + [9.0], 0.9: [4.0]}


def test_the_best_stable_configuration_on_all_nodes_is_recommended() -> None:
    tuner = studied(UNSTABLE)
    found = tuner.recommend()
    assert found is not None
    assert found.configuration == {"x": 0.4}
    assert found.gain == pytest.approx(0.2, abs=0.02)
    assert found.gain_low is not None
    assert found.gain_high is not None
    assert 0.15 < found.gain_low < found.gain < found.gain_high < 0.25  # type: ignore[operator]
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_without_a_stable_one_the_default_is_recommended() -> None:
    found = studied({0.0: [10.0] * 6, 0.7: [5.0] * 5 + [9.0]}).recommend()
    assert found is not None
    assert (found.configuration, found.gain) == ({"x": 0.0}, 0.0)


def test_the_algorithm_learns_that_an_unstable_configuration_is_bad() -> None:
    tuner = studied(UNSTABLE)
    assert tuner.stability is not None
    values: dict[float, set[float]] = {}
    for trial in counted(PROBLEM, tuner.stability, tuner.finished):
        values.setdefault(float(trial.configuration["x"]), set()).add(round(trial.metrics["s"], 6))
    # Twice the default, which is worse than its own worst run.
    assert len(values[0.7]) == 1
    assert min(values[0.7]) == pytest.approx(20.0, rel=0.05)
    assert min(values[0.4]) > 7.5


def test_it_says_on_which_nodes_it_is_stable_and_what_a_new_node_may_do() -> None:
    tuner = studied({**UNSTABLE, 0.5: [6.0] * 5 + [10.0]})
    assert tuner.stability is not None
    reasons = conditions_of(PROBLEM, tuner.stability, Stability((1, 3, 10)), {"x": 0.4})
    assert [one.code for one in reasons] == ["stable", "fewer_nodes", "unstable_left_out"]
    assert reasons[0] == ("stable on 6 of 6 nodes; a new node may be 30 % worse with a probability of at most 39 %")
    assert reasons[0].values == {"nodes": 6, "limit": 0.3, "most": pytest.approx(0.393, abs=1e-3)}
    assert reasons[1] == "measured on 6 of 10 nodes that stability.nodes asks for"
    assert reasons[2] == "2 configurations were better on average but unstable"
    assert [one.configuration["x"] for one in unstable_ones(tuner.stability)] == [0.7, 0.5]


def test_an_unstable_configuration_that_was_checked_is_not_recommended() -> None:
    tuner = studied(UNSTABLE)
    found = tuner.recommend()
    chosen: Configuration = {"x": 0.7}
    assert found is not None
    assert tuner.stability is not None
    verdict = conclude(PROBLEM, replace(found, configuration=chosen), None, 6, 6)
    assert verdict.level is Level.PROVISIONAL
    withheld = without_unstable(PROBLEM, tuner.stability, STABILITY, verdict)
    assert (withheld.configuration, withheld.level, withheld.code) == ({"x": 0.0}, Level.NO_GAIN, Finding.UNSTABLE)
    assert withheld.text == "no gain to use: unstable on 1 of 6 nodes (n5)"
    assert withheld.compared is not None
    assert withheld.compared.configuration == chosen
    (reason, *_) = conditions_of(PROBLEM, tuner.stability, STABILITY, chosen)
    assert reason.code == "unstable"
    assert reason == (
        "unstable: 30 % worse on 1 of 6 nodes (n5); a new node may be so with a probability of at most 58 %"
    )


def test_an_exhausted_space_ends_with_the_last_stage() -> None:
    problem = Problem.build(
        Space.build([FloatParameter("x", 0.0, 0.3, step=0.1, default=0.0)]), [Objective("s", "minimize")], noisy=True
    )
    tuner, cursor = Tuner(problem, Method(algorithm="grid", stability=STABILITY)), 0
    met: dict[float, int] = {}
    for number in range(1, 60):
        answer = tuner.suggest(1, cursor=cursor)
        cursor = answer.cursor
        if answer.exhausted:
            break
        (one,) = answer.items
        x = float(one.configuration["x"])
        met[x] = met.get(x, -1) + 1
        trial = TrialRecord(number, one.configuration, TrialState.COMPLETED, {"s": 2.0 - x}, origin=one.origin)
        tuner.update([replace(trial, agent="a", node=f"n{met[x]}")])
    assert answer.exhausted
    assert {x: count + 1 for x, count in met.items()} == {0.0: 6, 0.1: 6, 0.2: 6, 0.3: 6}


@pytest.mark.parametrize(
    ("field", "problem", "others"),
    [
        ("stability", Problem.build(SPACE, [Objective("s", "minimize"), Objective("mb", "minimize")]), {}),
        ("stability", Problem.build(SPACE, [Objective("s", "minimize")], noisy=False), {}),
        ("resampling.name", PROBLEM, {"resampling": "adaptive"}),
        ("estimator.name", PROBLEM, {"estimator": "mean"}),
    ],
)
def test_what_does_not_go_with_it(field: str, problem: Problem, others: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Method(algorithm="random", stability=STABILITY, **others).completed(problem)  # type: ignore[arg-type]
    assert caught.value.data["field"] == field
