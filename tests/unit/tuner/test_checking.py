"""Final checks on machines that are not quiet, with runs as they really end."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.tuner.checking import rounds_of, waits_of
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from service.tuner.verdict import Finding, Level, after_check, conclude
from tests.factories.checks import BEST, DEFAULT, Checking, Told, problem_of

FAILED, INFEASIBLE = Told(state=TrialState.FAILED), Told(state=TrialState.INFEASIBLE)


def ran(
    ratio: float, deviation: float = 0.02, doubtful: Callable[[int], bool] = lambda side: False
) -> Callable[[int, int], Told]:
    """Return runs with noise: the best takes `ratio` of the default's time."""
    generator = random.Random(1)
    return lambda side, _: Told((1.0, ratio)[side] * generator.gauss(1, deviation), doubtful(side))


def test_a_large_gain_is_proven_although_only_slow_runs_are_judged() -> None:
    """The default takes 0.5 s, so that its runs are judged, and the best takes 0.0625 s."""
    check = Checking(
        lambda side, number: Told((0.5, 0.0625)[side] * (1 + 0.01 * (number % 3)), doubtful=side == 0),
        FinalCheck(max_trials=8, effects=0),
    )
    result = check.tuner.checked(BEST)
    assert check.counts() == [4, 4]
    assert result.proven
    assert (result.rounds, result.disturbed) == (4, 4)
    found = after_check(check.problem, BEST, result)
    assert found is not None
    assert found.default == pytest.approx(0.505, abs=0.01)
    assert found.value == pytest.approx(0.063, abs=0.001)


def test_a_gain_in_runs_that_are_all_disturbed_is_not_plainly_proven() -> None:
    result = Checking(ran(0.9, 0.01, lambda side: True)).tuner.checked(BEST)
    assert not result.proven
    assert "while other processes took 33 % of the CPUs" in result.text


def test_load_that_slows_one_side_more_is_no_gain() -> None:
    """Other processes slow the default down by 22 % and the best by 4 %."""
    result = Checking(ran(1.045 / 1.225, 0.02, lambda side: True)).tuner.checked(BEST)
    assert not result.proven
    measured = [
        Told(
            0.24 * (1 + slowed) * random.Random(place).gauss(1, 0.01),
            interference=Interference(0.5, slowed / (1 + slowed)),
        )
        for place, slowed in enumerate([0.225, 0.045] * 21)
    ]
    known = Checking(lambda side, number: measured[2 * number + side]).tuner.checked(BEST)
    assert not known.proven
    assert known.certain
    assert known.low < 0 < known.high


def test_a_configuration_that_loses_is_not_recommended() -> None:
    check = Checking(ran(1.3))
    result = check.tuner.checked(BEST)
    found = after_check(check.problem, BEST, result)
    assert found is not None
    verdict = conclude(check.problem, found, result, check.counts()[1], check.counts()[0])
    assert (verdict.code, verdict.configuration, verdict.value) == (Finding.WORSE, DEFAULT, verdict.default)
    assert verdict.compared is not None
    assert verdict.compared.configuration == BEST


def half(told: Told) -> Callable[[int, int], Told]:
    generator, plain = random.Random(2), ran(0.9)
    return lambda side, number: told if side and generator.random() < 0.5 else plain(side, number)


@pytest.mark.parametrize(
    ("runs", "policy", "at_once"),
    [
        (lambda side, number: FAILED if side else Told(1.0), {}, 1),
        (lambda side, number: INFEASIBLE if side else Told(1.0), {}, 1),
        (lambda side, number: Told(1.0) if side else FAILED, {}, 1),
        (half(FAILED), {}, 1),
        (ran(0.9, 0.02, lambda side: side == 0), {}, 1),
        (ran(0.9, 0.02, lambda side: side == 1), {"max_trials": 9}, 1),
        (lambda side, number: Told(0.9) if side else Told(5.0, state=TrialState.PRUNED), {}, 1),
        (ran(0.9), {"max_trials": 9}, 3),
    ],
)
def test_both_sides_are_measured_alike(runs: Callable[[int, int], Told], policy: dict[str, int], at_once: int) -> None:
    check = Checking(runs, FinalCheck(**{"max_trials": 20, "effects": 0, **policy}), at_once)
    counts = check.counts()
    assert abs(counts[0] - counts[1]) <= 2
    assert sum(counts) <= check.policy.max_trials


def test_agents_of_different_speed_do_not_hide_a_gain() -> None:
    """A round is on one agent. Each of two agents has half of the rounds."""

    def machine(number: int) -> str:
        return ("slow", "fast")[number % 2]

    def on_agents(seed: int) -> Callable[[int, int], Told]:
        generator = random.Random(seed)
        speeds = {"slow": 1.8, "fast": 1.0}
        return lambda side, number: Told(
            (1.0, 0.8)[side] * generator.gauss(1, 0.01) * speeds[machine((number + 1) // 2)]
        )

    for seed in range(5):
        assert Checking(on_agents(seed), machine=machine, seed=seed).tuner.checked(BEST).proven


def test_members_and_the_default_are_measured_alike() -> None:
    generator = random.Random(1)
    problem = problem_of("s", "e")
    members: list[Configuration] = [{"x": 0.5}, {"x": 1.0}]

    def told(side: int, number: int) -> Told:
        size = (1.0, 0.8, 0.6)[side]
        return Told({name: size * generator.gauss(1, 0.01) for name in ("s", "e")}, doubtful=side == 0)

    check = Checking(told, problem=problem, best=members)
    verdict = check.tuner.checked_members(members, check.policy)
    assert set(check.counts()) == {6}
    assert verdict.level is Level.PROVEN
    assert [one.certain for one in verdict.members] == [False, True], "all interference may have hit the default"
    alone = Checking(told, problem=problem, best=members[:1])
    provisional = alone.tuner.checked_members(members[:1], alone.policy)
    assert provisional.level is Level.PROVISIONAL
    assert provisional.text.endswith("; not proven for a quiet machine")


def test_a_configuration_that_fails_more_often_than_the_default_is_not_proven() -> None:
    generator, plain = random.Random(1), ran(0.8, 0.01)
    check = Checking(lambda side, number: INFEASIBLE if side and generator.random() < 0.6 else plain(side, number))
    result = check.tuner.checked(BEST)
    assert not result.proven
    assert result.failing
    failed = [trial.state for trial in check.trials if trial.configuration == BEST].count(TrialState.INFEASIBLE)
    assert f"the best configuration failed in {failed} of " in result.text


def test_a_few_failures_of_both_sides_are_no_obstacle() -> None:
    plain = ran(0.8, 0.01)
    check = Checking(lambda side, number: INFEASIBLE if number in (1, 4, 7) else plain(side, number))
    assert check.tuner.checked(BEST).proven


def test_the_order_follows_from_the_seed() -> None:
    orders = [tuple(Checking(ran(0.9), seed=seed).order[:12]) for seed in range(12)]
    assert len(set(orders)) > 3
    assert {order[0] for order in orders} == {0, 1}, "a cold first run is not always the default's"
    assert Checking(ran(0.9), seed=3).order[:12] == list(orders[3])


def test_a_lost_agent_leaves_both_sides_equal() -> None:
    for seed in range(20):
        plain = ran(0.9, 0.03)

        def told(side: int, number: int, plain: Callable[[int, int], Told] = plain) -> Told:
            return FAILED if number in (3, 4, 5) and side else plain(side, number)

        check = Checking(told, FinalCheck(max_trials=12, effects=0), seed=seed)
        result = check.tuner.checked(BEST)
        assert result.runs == result.default_runs >= 4


def test_trials_without_a_round_belong_to_the_first_that_lacks_them() -> None:
    """In the same process, and in checks that an earlier version has begun."""
    problem = problem_of()
    sides = [DEFAULT, BEST, DEFAULT, DEFAULT, BEST]
    states = [TrialState.COMPLETED, TrialState.FAILED, TrialState.COMPLETED, TrialState.COMPLETED, TrialState.ACTIVE]
    trials = [
        TrialRecord(number, one, state, {"s": 1.0} if state is TrialState.COMPLETED else {}, origin="check")
        for number, (one, state) in enumerate(zip(sides, states, strict=True), start=1)
    ]
    rounds = rounds_of(problem, [DEFAULT, BEST], trials)
    assert [(one.number, sorted(one.runs), one.is_void) for one in rounds] == [
        (1, [0, 1], True),
        (2, [0, 1], False),
        (3, [0], False),
    ]


def test_waiting_trials_that_are_no_longer_needed_are_spared() -> None:
    tuner = Tuner(problem_of(), Method(algorithm="random", final_check=FinalCheck(max_trials=20)))

    def trial(number: int, one: Configuration, round_: int, state: TrialState) -> TrialRecord:
        metrics = {"s": 1.0} if state is TrialState.COMPLETED else {}
        return TrialRecord(number, one, state, metrics, origin="check", round=round_)

    policy = FinalCheck(max_trials=20)
    tuner.update([trial(1, DEFAULT, 1, TrialState.FAILED)])
    waiting = [trial(2, BEST, 1, TrialState.REQUESTED), trial(3, DEFAULT, 2, TrialState.REQUESTED)]
    assert tuner.spared(BEST, waiting, policy) == [2]
    tuner.update(
        [trial(4 + place, (DEFAULT, BEST)[place % 2], 3 + place // 2, TrialState.COMPLETED) for place in range(12)]
    )
    assert tuner.spared(BEST, waiting, policy) == [2, 3], "the interval is narrow"


def test_waits() -> None:
    problem = problem_of("s", "cpu")
    record = TrialRecord(1, BEST, TrialState.COMPLETED, {"s": 1.0, "cpu": 1.0})
    assert waits_of(problem, record) == (None, None)
    measured = Interference(share=0.5, wait=0.3, unaffected=("cpu",))
    trial = TrialRecord(1, BEST, TrialState.COMPLETED, {"s": 1.0, "cpu": 1.0}, interference=measured)
    assert waits_of(problem, trial) == (0.3, 0.0)
    unknown = TrialRecord(1, BEST, TrialState.COMPLETED, {}, interference=Interference(share=0.5, unaffected=("cpu",)))
    assert waits_of(problem, unknown) == (None, 0.0)
    memory = problem_of("memory", unit="MB")
    assert waits_of(memory, TrialRecord(1, BEST, TrialState.COMPLETED, {}, interference=measured)) == (0.0,)
