"""The final check of members of a Pareto set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.policies.check import FinalCheck
from service.policies.check_rounds import MOST_VOID, Outcome, Round, Run, Turn, fails
from service.policies.members import choose, volume
from tests.factories.pareto import simulate


def row(value: float) -> tuple[float, float]:
    return value, value


def test_members_are_chosen_by_the_volume_that_each_adds() -> None:
    default = np.array([10.0, 10.0])
    # The third is between the others and adds little; the last is worse than the default in one objective.
    values = np.array([[2.0, 6.0], [6.0, 2.0], [4.0, 3.0], [1.0, 11.0]])
    assert choose(values, default, 1) == [2]
    assert choose(values, default, 3) == [2, 0, 1]
    assert choose(values, default, 8) == [2, 0, 1, 3], "the best in each objective follows"


def test_the_choice_adds_as_much_volume_as_any_greedy_one() -> None:
    rng = np.random.default_rng(3)
    default = np.ones(3)
    values = rng.random((40, 3))
    chosen = choose(values, default, 5)
    for count in range(5):
        before = [(default - values[place]).tolist() for place in chosen[:count]]
        added = [volume([*before, (default - one).tolist()]) for one in values]
        assert added[chosen[count]] == pytest.approx(max(added))


def test_members_that_add_nothing_are_left_out() -> None:
    values = np.array([[1.0, 5.0], [1.0, 5.0], [5.0, 1.0]])
    assert choose(values, np.array([6.0, 6.0]), 8) == [0, 2], "a copy adds nothing"
    assert choose(values, np.array([6.0, 4.0]), 8) == [2, 0]
    assert choose(values, None, 8) == [0, 2], "without a default, the best in each objective"
    assert choose(values, None, 1) == [0]
    assert choose(np.empty((0, 2)), np.array([1.0, 1.0]), 3) == []


def test_the_volume_is_a_union_of_boxes() -> None:
    assert volume([[0.2, 0.1]]) == pytest.approx(0.02)
    assert volume([[0.2, 0.1], [0.1, 0.2]]) == pytest.approx(0.03)
    assert volume([[0.2, -0.1], [0.0, 0.5]]) == 0.0
    assert volume([]) == 0.0
    assert np.isfinite(volume([[1e100] * 8])), "JSON has no infinity"


def test_the_usual_number_of_trials_is_enough_for_three_members() -> None:
    check = FinalCheck()
    assert (check.most_members(2), check.rounds(3, 2)) == (3, 5)
    assert FinalCheck(max_trials=10_000).most_members(2) == 8
    for trials in range(10, 100):
        chosen = FinalCheck(max_trials=trials).most_members(2)
        assert (chosen + 1) * check.rounds(chosen, 2) <= trials
        assert chosen == 8 or (chosen + 2) * check.rounds(chosen + 1, 2) > trials


def test_the_trials_of_one_member_have_to_be_allowed() -> None:
    assert FinalCheck.parse({"max_trials": 10}, "final_check", 2).max_trials == 10
    assert FinalCheck.parse({}, "final_check", 2).effects == 0
    for data, field, allowed in (
        ({"max_trials": 9}, "max_trials", "10 or more for a level of 0.95 and 2 objectives"),
        ({"effects": 16}, "effects", "0 for a study with several objectives"),
    ):
        with pytest.raises(InvalidInput) as caught:
            FinalCheck.parse(data, "final_check", 2)
        assert (caught.value.data["field"], caught.value.data["allowed"]) == (f"final_check.{field}", allowed)


def rounds_of(*sides: Sequence[tuple[float, float]]) -> list[Round]:
    """Return the rounds with these values of two objectives, by side."""
    rounds: dict[int, dict[int, Run]] = {}
    for side, values in enumerate(sides):
        for number, one in enumerate(values, start=1):
            rounds.setdefault(number, {})[side] = Run(Outcome.MEASURED, one, (None, None))
    return [Round(number, rounds[number], len(sides)) for number in sorted(rounds)]


def test_each_round_has_every_member_once() -> None:
    check, seed = FinalCheck(max_trials=16, width=0.001), 5
    turns: list[Turn] = []
    rounds: list[Round] = []
    while found := check.turns(rounds, 4, seed, 1):
        turns += found
        values = Run(Outcome.MEASURED, row(1.0 + len(turns) % 3), (None, None))
        begun = {one.number: one.runs for one in rounds}
        begun[found[0].round] = {**begun.get(found[0].round, {}), found[0].side: values}
        rounds = [Round(number, runs, 4) for number, runs in begun.items()]
    assert [turn.round for turn in turns] == [1 + place // 4 for place in range(16)]
    orders = [[turn.side for turn in turns[first : first + 4]] for first in range(0, 16, 4)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert orders[1] == orders[0][::-1]
    assert orders[3] == orders[2][::-1]


@given(st.integers(2, 9), st.integers(1, 5), st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=60))
def test_no_side_gets_ahead(members: int, at_once: int, outcomes: list[Outcome]) -> None:
    """A member has at most one run in each round, whatever becomes of the runs, and the trials are not exceeded."""
    check = FinalCheck(max_trials=50, width=1e-6)
    rounds: dict[int, dict[int, Run]] = {}
    for number, outcome in enumerate(outcomes):
        known = [Round(place, rounds[place], members + 1) for place in sorted(rounds)]
        turns = check.turns(known, members + 1, 0, at_once)
        assert len(turns) <= at_once
        for turn in turns:
            own = rounds.setdefault(turn.round, {})
            assert turn.side not in own
            assert not fails(known, turn.side), "a member that keeps failing is left out"
            assert not Round(turn.round, own, members + 1).is_void
            own[turn.side] = Run(Outcome.OPEN)
        opened = [
            (place, side) for place, runs in rounds.items() for side in runs if runs[side].outcome == Outcome.OPEN
        ]
        if not opened:
            break
        place, side = opened[0]
        rounds[place][side] = Run(outcome, row(1.0 + number % 7) if outcome is Outcome.MEASURED else (), (None, None))
    assert sum(map(len, rounds.values())) <= check.max_trials + MOST_VOID * (members + 1)


def test_it_ends_as_soon_as_all_intervals_are_narrow() -> None:
    exact = [[(1.0 + place, 2.0)] * 8 for place in range(4)]
    check = FinalCheck(max_trials=60)
    assert check.turns(rounds_of(*exact), 4, 0, 1) == []
    few = [one[:5] for one in exact]
    assert check.turns(rounds_of(*few), 4, 0, 1), "chance alone may make so few intervals narrow"
    assert check.turns(rounds_of(*few[:3], few[3][:4]), 4, 0, 1) == [Turn(5, 3)]
    assert check.turns(rounds_of(*exact[:3], [(4.0, 2.0 + place) for place in range(8)]), 4, 0, 1)
    failing = [Round(one.number, {**one.runs, 3: Run(Outcome.UNUSABLE)}, 4) for one in rounds_of(*exact)]
    assert check.turns(failing, 4, 0, 1) == [], "the others are enough"


def test_a_disturbance_counts_for_all_objectives() -> None:
    check = FinalCheck(max_trials=40)
    default, member = ([row(size + place / 10) for place in range(5)] for size in (10.0, 8.0))
    [quiet] = check.comparisons(rounds_of(default, member), 2)
    assert quiet is not None
    assert all(one.certain and one.gain.estimate == pytest.approx(0.2, abs=0.02) for one in quiet)
    busy = [
        Round(one.number, {side: replace(run, share=0.5) for side, run in one.runs.items()})
        for one in rounds_of(default, member)
    ]
    [disturbed] = check.comparisons(busy, 2)
    assert disturbed is not None
    assert [one.certain for one in disturbed] == [False, False]
    assert check.comparisons(rounds_of(default, member[:3]), 2) == [None]


GAINS = [[0.4, 0.2], [0.3, 0.3], [0.2, 0.4]]


def test_the_interval_of_the_hypervolume_holds() -> None:
    truth, found = volume(GAINS), [simulate(GAINS, FinalCheck(), seed) for seed in range(300)]
    assert {one.trials for one in found} == {20}
    assert np.mean([(one.low or 0.0) <= truth <= (one.high or 0.0) for one in found]) >= 0.95
    assert all((one.low or 0.0) <= (one.gain or 0.0) <= (one.high or 0.0) for one in found)
    assert np.mean([one.level == "proven" for one in found]) > 0.5, "a check that proves nothing would hold as well"


def test_members_like_the_default_are_hardly_ever_proven() -> None:
    found = [simulate([[0.0, 0.0]] * 3, FinalCheck(), seed).level for seed in range(300)]
    assert found.count("proven") <= 15  # type: ignore[arg-type]


def test_a_narrower_width_takes_no_fewer_trials() -> None:
    trials = [simulate(GAINS, FinalCheck(width=width, max_trials=60), 1, 0.01).trials for width in (10.0, 0.3, 0.001)]
    assert all(few <= more for few, more in pairwise(trials))
    assert trials[0] < trials[-1] == 60
