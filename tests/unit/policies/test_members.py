"""The final check of members of a Pareto set."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.policies.check import FinalCheck, Side
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


def test_one_round_goes_forward_and_the_next_backward() -> None:
    check, values = FinalCheck(max_trials=16, width=0.001), [[row(1.0 + place)] * 0 for place in range(4)]
    order = []
    while turns := check.turns([Side(one) for one in values], 1):
        order += turns
        values[turns[0]].append(row(1.0 + len(order) % 3))
    assert order == [0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0]


outcomes = st.sampled_from(["value", "doubtful", "failed", "waiting"])


@given(st.integers(2, 9), st.lists(st.tuples(st.integers(1, 4), outcomes), max_size=60))
def test_no_side_gets_ahead(members: int, events: list[tuple[int, str]]) -> None:
    """Each next trial is of a side with the fewest values, no matter how the others have ended."""
    check = FinalCheck(max_trials=50, width=1e-6)
    sides = [Side([]) for _ in range(members + 1)]
    for number, (count, outcome) in enumerate(events):
        turns = check.turns(sides, count)
        assert len(turns) <= count
        assert sum(side.begun for side in sides) + len(turns) <= check.max_trials
        used = [place for place, side in enumerate(sides) if place == 0 or not side.fails]
        counts = [len(side.values) + side.waiting for side in sides]
        for place in turns:
            if len(used) > 1:
                assert place in used, "a member that keeps failing is left out"
                assert counts[place] == min(counts[one] for one in used)
            counts[place] += 1
            side = sides[place]
            if outcome == "value":
                sides[place] = Side([*side.values, row(1.0 + number % 7)], side.doubtful, side.failed, side.waiting)
            elif outcome == "doubtful":
                sides[place] = Side(side.values, [*side.doubtful, row(9.0)], side.failed, side.waiting)
            elif outcome == "failed":
                sides[place] = Side(side.values, side.doubtful, side.failed + 1, side.waiting)
            else:
                sides[place] = Side(side.values, side.doubtful, side.failed, side.waiting + 1)


def test_it_ends_as_soon_as_all_intervals_are_narrow() -> None:
    exact = [Side([(1.0 + place, 2.0)] * 5) for place in range(4)]
    assert FinalCheck(max_trials=40).turns(exact, 1) == []
    assert FinalCheck(max_trials=40).turns([*exact[:3], Side([(4.0, 2.0)] * 4)], 1) == [3]
    noisy = [*exact[:3], Side([(4.0, 2.0 + place) for place in range(5)])]
    assert FinalCheck(max_trials=40).turns(noisy, 1)
    failing = [*exact[:3], Side([], failed=2)]
    assert FinalCheck(max_trials=40).turns(failing, 1) == [], "the others are enough"


def test_doubtful_timings_count_only_if_there_are_too_few_others() -> None:
    check = FinalCheck(max_trials=40)
    default, clean = Side([row(10.0 + place / 10) for place in range(5)]), [row(8.0 + place / 10) for place in range(5)]
    [trusted] = check.gains([default, Side(clean, [row(80.0)])])
    assert trusted is not None
    assert all(gain.estimate == pytest.approx(0.2, abs=0.02) for gain in trusted)
    [both] = check.gains([default, Side(clean[:3], clean[3:])])
    assert both == trusted
    assert check.gains([default, Side(clean[:3])]) == [None]


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
