"""The comparison of the results of two studies."""

from __future__ import annotations

import random
from collections.abc import Sequence

from service.core.errors import JsonValue
from service.core.problem import Goal
from service.results.better import Answer, Runs, Setting, compare_runs, different_settings


def runs(values: Sequence[float], *machines: str, fair: bool = True) -> Runs:
    return Runs(values, fair, set(machines))


def test_the_answer_follows_from_the_interval_in_the_direction_of_the_goal() -> None:
    low, high = runs([1.0, 1.01, 1.02, 1.03, 1.04]), runs([2.0, 2.01, 2.02, 2.03, 2.04])
    goals: tuple[tuple[Goal, Runs, Runs], ...] = (("minimize", low, high), ("maximize", high, low))
    for goal, first, second in goals:
        found = compare_runs(("good", first), ("bad", second), goal, 1)
        assert found.answer is Answer.BETTER
        assert found.low is not None
        assert found.low > 0.4
        assert compare_runs(("bad", second), ("good", first), goal, 1).answer is Answer.WORSE
    assert compare_runs(("a", low), ("b", low), "minimize", 1).answer is Answer.NO_DIFFERENCE
    few = compare_runs(("a", runs([1.0, 1.1])), ("b", high), "minimize", 1)
    assert (few.answer, few.gain) == (Answer.UNKNOWN, None)


def test_several_comparisons_hold_at_once() -> None:
    """Nine studies that are as good as the first: at most one comparison in twenty calls one of them different."""
    rng = random.Random(5)
    wrong = 0
    for _ in range(200):
        against = runs([rng.gauss(10, 1) for _ in range(12)])
        answers = [
            compare_runs(("s", runs([rng.gauss(10, 1) for _ in range(12)])), ("first", against), "minimize", 9).answer
            for _ in range(9)
        ]
        wrong += any(answer is not Answer.NO_DIFFERENCE for answer in answers)
    assert wrong <= 20, "the expectation is at most 10"


def test_chosen_runs_and_other_machines_are_reported() -> None:
    here, there = runs([1.0], "zen4"), runs([1.0], "zen5", fair=False)
    found = compare_runs(("a", here), ("b", there), "minimize", 1)
    assert not found.fair
    assert not found.same_machine
    unknown = compare_runs(("a", here), ("b", runs([1.0])), "minimize", 1)
    assert unknown.fair
    assert unknown.same_machine, "an unknown machine is no other machine"


def test_settings_that_differ_are_listed_by_their_paths() -> None:
    def spec(algorithm: str, most: int, *names: str) -> JsonValue:
        parameters: list[JsonValue] = [{"name": name, "type": "int", "min": 0, "max": most} for name in names]
        return {"algorithm": {"name": algorithm, "options": {}}, "noisy": True, "space": {"parameters": parameters}}

    found = different_settings([spec("ga", 8, "x", "y"), spec("ga", 8, "y")])
    assert found == [Setting("space.x", ['{"type": "int", "min": 0, "max": 8}', None])]
    assert [one.name for one in different_settings([spec("ga", 8, "x"), spec("sa", 9, "x")])] == [
        "algorithm.name",
        "space.x",
    ]
    assert different_settings([spec("ga", 8, "x"), spec("ga", 8, "x")]) == []
