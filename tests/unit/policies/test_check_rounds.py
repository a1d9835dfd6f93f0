"""The order of the runs of a final check, and the rounds that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from service.core.problem import Objective
from service.policies.check import FinalCheck
from service.policies.check_rounds import Outcome, Round, Run, Turn, fails, order_of

OPEN, UNUSABLE, FAILED = Run(Outcome.OPEN), Run(Outcome.UNUSABLE), Run(Outcome.FAILED)
CHECK = FinalCheck(width=1e-9, max_trials=20)


def done(value: float = 1.0) -> Run:
    return Run(Outcome.MEASURED, (value,), (None,))


def rounds(*each: Mapping[int, Run], sides: int = 2) -> list[Round]:
    return [Round(number, runs, sides) for number, runs in enumerate(each, start=1)]


def sides(turns: list[Turn]) -> list[int]:
    return [turn.side for turn in turns]


def test_each_second_round_reverses_the_one_before() -> None:
    for seed in range(20):
        for place in range(0, 10, 2):
            assert order_of(seed, place + 1, 4) == order_of(seed, place, 4)[::-1]
            assert sorted(order_of(seed, place, 4)) == [0, 1, 2, 3]


def test_the_first_run_is_not_always_the_defaults() -> None:
    """It may be slow, because caches are cold. The same study has the same order in any process."""
    firsts = [CHECK.turns([], 2, seed, 1)[0].side for seed in range(100)]
    assert 30 < sum(firsts) < 70
    assert len({tuple(sides(CHECK.turns([], 2, seed, 20))) for seed in range(100)}) > 20
    assert CHECK.turns([], 2, 7, 20) == CHECK.turns([], 2, 7, 20)


def test_a_begun_round_is_completed_before_another_one_begins() -> None:
    begun = rounds({0: done(), 1: done()}, {1: OPEN})
    assert CHECK.turns(begun, 2, 0, 1) == [Turn(2, 0)]
    assert [turn.round for turn in CHECK.turns(begun, 2, 0, 5)] == [2, 3, 3, 4, 4]


def test_only_so_many_rounds_are_open_at_once() -> None:
    assert [turn.round for turn in CHECK.turns([], 2, 0, 20, most_open=2)] == [1, 1, 2, 2]
    assert CHECK.turns(rounds({0: done(), 1: OPEN}), 2, 0, 20, most_open=1) == []
    found = CHECK.turns(rounds({0: done()}), 2, 0, 20, most_open=2)
    assert [turn.round for turn in found] == [1, 2, 2]
    assert [turn.round for turn in CHECK.turns(rounds({0: done()}), 2, 0, 20, most_open=2, first=9)] == [1, 9, 9]


def test_a_round_in_which_the_machine_fails_counts_for_no_side() -> None:
    found = CHECK.turns(rounds({0: done(), 1: FAILED}), 2, 0, 2)
    assert [turn.round for turn in found] == [2, 2]
    assert {turn.side for turn in found} == {0, 1}
    # Its runs count against the limit, and no part of a round begins.
    used = rounds({0: FAILED}, *[{0: done(), 1: done(2.0)}] * 9)
    assert CHECK.turns(used, 2, 0, 5) == []


def test_void_rounds_are_replaced_if_the_level_needs_it() -> None:
    """Four rounds are needed for 95 %, and the machine's fault alone does not make the gain unknown."""
    least = FinalCheck(width=1e-9, max_trials=8)
    once = rounds({0: done(), 1: FAILED}, *[{0: done(), 1: done()}] * 3)
    assert [turn.round for turn in least.turns(once, 2, 0, 9)] == [5, 5]
    assert least.turns([*once, Round(5, {0: done(), 1: done()})], 2, 0, 9) == []
    often = rounds(*[{0: FAILED}, {0: done(), 1: done()}] * 2, {0: FAILED}, {0: done(), 1: done()}, {1: FAILED})
    assert least.turns(often, 2, 0, 9) == []


def test_three_void_rounds_in_a_row_end_the_check() -> None:
    assert CHECK.turns(rounds({0: FAILED}, {0: done(), 1: done()}, {1: FAILED}, {1: FAILED}), 2, 0, 1)
    assert not CHECK.turns(rounds({0: done(), 1: done()}, {0: FAILED}, {1: FAILED}, {1: FAILED}), 2, 0, 1)


def test_a_configuration_that_keeps_failing_is_not_measured_any_more() -> None:
    """A time limit or an exit code is its own fault."""
    failing = rounds(*[{0: done(), 1: UNUSABLE}] * 2, {0: done(), 1: done()})
    assert not fails(failing, 1)
    assert CHECK.turns(failing, 2, 0, 1)
    failing = rounds(*[{0: done(), 1: UNUSABLE}] * 3, {0: done(), 1: done()})
    assert fails(failing, 1)
    assert CHECK.turns(failing, 2, 0, 1) == []
    # Another member of a Pareto set is measured further.
    several = rounds(*[{0: done(), 1: UNUSABLE, 2: done()}] * 4, sides=3)
    assert sorted(sides(CHECK.turns(several, 3, 0, 3))) == [0, 0, 2]


def test_one_of_several_that_never_works_leaves_the_others_their_rounds() -> None:
    once = rounds({1: FAILED, 0: done()}, sides=3)
    assert CHECK.turns(once, 3, 0, 1) == [Turn(1, 2)], "the round goes on"
    twice = rounds({0: done(), 1: FAILED, 2: done()}, {0: done(), 1: UNUSABLE, 2: done()}, sides=3)
    assert sorted(sides(CHECK.turns(twice, 3, 0, 4))) == [0, 0, 2, 2]
    worked = rounds({0: done(), 1: FAILED, 2: done()}, {0: done(), 1: done(), 2: done()}, sides=3)
    assert sorted(sides(CHECK.turns(worked, 3, 0, 3))) == [0, 1, 2]
    lost = rounds({0: done(), 1: FAILED, 2: FAILED}, sides=3)
    assert [turn.round for turn in CHECK.turns(lost, 3, 0, 3)] == [2, 2, 2]


def test_the_verdict_names_the_most_frequent_cause() -> None:
    killed, slow = replace(UNUSABLE, reason="Exit code 137."), replace(UNUSABLE, reason="It took 10 s.")
    failing = rounds({0: done(), 1: slow}, *[{0: done(), 1: killed}] * 3)
    text = CHECK.result(failing, Objective("s", "minimize")).text
    assert text == ("no gain to use: in the final check, the best configuration failed in 4 of 4 runs: Exit code 137")
    lost = rounds(*[{0: replace(FAILED, reason="Agent 'a' has stopped sending heartbeats.")}] * 3)
    text = CHECK.result(lost, Objective("s", "minimize")).text
    assert text.endswith("; the machine failed the last 3: Agent 'a' has stopped sending heartbeats")
    default = rounds(*[{0: killed, 1: done()}] * 4)
    text = CHECK.result(default, Objective("s", "minimize")).text
    assert text.endswith("the default failed in 4 of 4 runs of the final check: Exit code 137")


def test_with_a_default_that_keeps_failing_nothing_is_compared() -> None:
    assert CHECK.turns(rounds(*[{0: UNUSABLE, 1: done(), 2: done()}] * 4, sides=3), 3, 0, 3) == []


@pytest.mark.parametrize(("trials", "sides", "expected"), [(8, 2, 1), (16, 2, 2), (20, 2, 2), (40, 2, 5), (20, 4, 1)])
def test_every_agent_has_enough_rounds_for_a_comparison(trials: int, sides: int, expected: int) -> None:
    assert FinalCheck(max_trials=trials).most_machines(sides) == expected
