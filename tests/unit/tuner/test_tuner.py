"""The method as a whole, with real algorithms and policies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from service.algorithms import registry
from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.core.errors import InvalidInput, JsonValue
from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, Configuration, FloatParameter, IntParameter, Scalar, Space
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.policies.pruning import Running, Step
from service.policies.stopping import parse
from service.tuner.method import Method
from service.tuner.tuner import Tuner

PROBLEM = Problem.build(
    Space.build([IntParameter("n", 1, 50, default=10), BoolParameter("huge", default=False)]),
    [Objective("seconds", "minimize", "s")],
)


class Predicting(Algorithm):
    """A costly algorithm with a posterior that knows best."""

    cost = Cost.COSTLY
    uses_history = True

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        return Batch(tuple({"n": cursor + one + 1, "huge": False} for one in range(count)), cursor + count, False)

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        mean = np.array([abs(float(one["n"]) - 2) for one in configurations])
        return Prediction(mean, np.full(len(mean), 0.5), 20.0)

    def dump(self) -> JsonValue:
        return {"known": True}


@pytest.fixture
def predicting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "create", lambda name, problem, **more: Predicting(problem, **more))


def finished(number: int, configuration: Configuration, seconds: float, origin: str = "suggested") -> TrialRecord:
    return TrialRecord(number, configuration, TrialState.COMPLETED, {"seconds": seconds}, number, seconds, origin)


def replay(tuner: Tuner, count: int) -> list[tuple[Configuration, str]]:
    """Ask and tell one by one; what was given out."""
    given: list[tuple[Configuration, str]] = []
    cursor = 0
    for number in range(1, count + 1):
        answer = tuner.suggest(1, cursor=cursor)
        (item,) = answer.items
        cursor = answer.cursor
        given.append((item.configuration, item.origin))
        tuner.update([finished(number, item.configuration, float(item.configuration["n"]), item.origin)])
    return given


def test_a_tuner_without_policies_suggests_what_the_algorithm_does() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", seed=3))
    assert (tuner.cost, tuner.uses_history) == (Cost.CHEAP, False)
    algorithm = registry.create("random", PROBLEM, seed=3, options={})
    answer, batch = tuner.suggest(5, cursor=7), algorithm.suggest(5, cursor=7)
    assert tuple(item.configuration for item in answer.items) == batch.configurations
    assert (answer.cursor, answer.exhausted) == (batch.cursor, batch.exhausted)
    assert {item.origin for item in answer.items} == {"suggested"}


def test_static_resampling_measures_each_configuration_so_often() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", resampling="static", resampling_options={"n": 3}))
    assert tuner.uses_history
    given = replay(tuner, 12)
    keys = [PROBLEM.space.key(configuration) for configuration, _ in given]
    assert {keys.count(key) for key in keys} == {3}
    assert [origin for _, origin in given].count("replicate") == 8


def test_replicates_on_their_way_are_not_asked_for_again() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", resampling="static", resampling_options={"n": 3}))
    answer = tuner.suggest(6, cursor=0)
    keys = [PROBLEM.space.key(item.configuration) for item in answer.items]
    assert all(keys.count(key) <= 3 for key in keys)


def test_a_replicate_has_the_fixed_values_or_is_left_for_later() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", resampling="static", resampling_options={"n": 2}))
    first = tuner.suggest(1, cursor=0)
    tuner.update([finished(1, {"n": 7, "huge": False}, 1.0)])
    fixed = tuner.suggest(1, cursor=first.cursor, fixed={"huge": True})
    assert (fixed.items[0].origin, fixed.items[0].configuration["huge"]) == ("suggested", True)


def test_the_same_history_gives_the_same_answers_in_another_process() -> None:
    method = Method(algorithm="random", seed=4, resampling="static")
    one, other = Tuner(PROBLEM, method), Tuner(PROBLEM, method)
    given = replay(one, 7)
    for number, (configuration, origin) in enumerate(given, start=1):
        other.update([finished(number, configuration, float(configuration["n"]), origin)])
    assert one.suggest(4, cursor=5) == other.suggest(4, cursor=5)


def test_adaptive_is_the_default_where_there_is_noise_and_a_posterior() -> None:
    quiet = Problem.build(PROBLEM.space, PROBLEM.objectives, noisy=False)
    assert Tuner(PROBLEM, Method(algorithm="gp")).method.resampling == "adaptive"
    assert Tuner(quiet, Method(algorithm="gp")).method.resampling == "none"
    assert Tuner(PROBLEM, Method(algorithm="random")).method.resampling == "none"


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (Method(algorithm="annealer"), "algorithm.name"),
        (Method(algorithm="random", algorithm_options={"speed": 1}), "algorithm.options.speed"),
        (Method(algorithm="random", resampling="often"), "resampling.name"),
        (Method(algorithm="random", estimator="mode"), "estimator.name"),
        (Method(algorithm="random", pruning=[("limit", {"seconds": 5}), ("never", {})]), "pruning[1].name"),
    ],
)
def test_unknown_algorithms_and_policies_are_refused_by_name(method: Method, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Tuner(PROBLEM, method)
    assert caught.value.data["field"] == field
    assert caught.value.data["allowed"]


@pytest.mark.usefixtures("predicting")
def test_the_recommendation_is_the_posteriors() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="gp", resampling="none"))
    assert tuner.recommend() is None
    tuner.update([finished(1, {"n": 30, "huge": False}, 0.1), finished(2, {"n": 3, "huge": False}, 0.9)])
    by_posterior = tuner.recommend()
    assert by_posterior is not None
    assert (by_posterior.configuration["n"], by_posterior.value) == (3, 0.9), "it expects 1.0, which nothing has taken"
    cheap = Tuner(PROBLEM, Method(algorithm="gp", resampling="none"))
    cheap.update(tuner.finished)
    by_estimate = cheap.recommend(costly=False)
    assert by_estimate is not None
    assert by_estimate.configuration["n"] == 30


def test_a_whole_search_recommends_what_keeps_a_noisy_limit() -> None:
    space = Space.build([FloatParameter("cache", 0, 1, default=0.1), FloatParameter("other", 0, 1)])
    objectives = [Objective("seconds", "minimize", "s")]
    problem = Problem.build(space, objectives, outcome_constraints=["memory_mb <= 200"])
    random = np.random.default_rng(1)
    tuner, cursor = Tuner(problem, Method(seed=1, budget=24)), 0
    for number in range(1, 25):
        asked = tuner.suggest(1, cursor=cursor)
        cursor, (item,) = asked.cursor, asked.items
        cache = float(item.configuration["cache"])
        metrics = {
            "seconds": (2 - cache) * np.exp(0.02 * random.normal()),
            "memory_mb": 400 * cache + 12 * random.normal(),
        }
        state = TrialState.COMPLETED
        tuner.update([TrialRecord(number, item.configuration, state, metrics, number, origin=item.origin)])
    found = tuner.recommend()
    assert found is not None
    # The limit is at 0.5, and the noise of a run is as much as 0.03.
    assert 0.2 < float(found.configuration["cache"]) < 0.51


def test_several_objectives_have_no_single_recommendation() -> None:
    problem = Problem.build(PROBLEM.space, [*PROBLEM.objectives, Objective("watts", "minimize")])
    tuner = Tuner(problem, Method(algorithm="random"))
    tuner.update([TrialRecord(1, {"n": 1, "huge": False}, TrialState.COMPLETED, {"seconds": 1.0, "watts": 1.0})])
    assert tuner.recommend() is None


def test_a_stopping_rule_sees_the_search_alone() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", stopping=parse({"rule": "trials", "trials": 3}, PROBLEM)))
    tuner.update([finished(number, {"n": number, "huge": False}, 1.0) for number in (1, 2)])
    tuner.update([finished(3, {"n": 1, "huge": False}, 1.0, origin="check")])
    assert tuner.stop(10.0, 0.1) is None
    tuner.update([finished(4, {"n": 4, "huge": False}, 1.0)])
    assert tuner.stop(10.0, 0.1)


def test_the_first_policy_that_says_so_prunes() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", pruning=[("limit", {"seconds": 60}), ("limit", {"seconds": 5})]))
    assert tuner.prune(Running(1, {"n": 1, "huge": False}, 4.0, ())) is None
    assert tuner.prune(Running(1, {"n": 1, "huge": False}, 6.0, ()))


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        # Milliseconds are a thousand for each second of running.
        ([(1.0, 1010.0), (2.0, 2000.0), (3.0, 3050.0)], 5000.0),
        # Part of the running time is something else.
        ([(1.0, 0.9), (2.0, 0.1), (3.0, 0.4)], 7.0),
        # Too few to tell: the unit says it.
        ([(1.0, 0.2)], 5.0),
    ],
)
def test_a_stopped_trial_is_at_least_as_bad_as_its_running_time(
    values: list[tuple[float, float]], bound: float
) -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random"))
    tuner.update(
        [
            TrialRecord(number, {"n": number, "huge": False}, TrialState.COMPLETED, {"seconds": value}, seconds=seconds)
            for number, (seconds, value) in enumerate(values, start=1)
        ]
    )
    running = Running(9, {"n": 9, "huge": False}, 5.0, [Step(1, 3.0), Step(2, 7.0)])
    assert tuner.bound(running) == {"seconds": pytest.approx(bound)}


def test_the_final_check_alternates_configurations_and_counts_only_its_own_trials() -> None:
    default: Configuration = PROBLEM.space.default()
    best: Configuration = {"n": 3, "huge": True}
    tuner = Tuner(PROBLEM, Method(algorithm="random", final_check=FinalCheck(max_trials=12)))
    # A lucky run of the search, and an unlucky one.
    tuner.update([finished(1, best, 0.001), finished(2, default, 1000.0)])
    random = np.random.default_rng(0)
    number, order = 3, []
    while found := tuner.check(best, 1):
        (configuration,) = found
        order.append(configuration == best)
        value = (8.0 if configuration == best else 10.0) + random.normal(0, 0.5)
        tuner.update([finished(number, configuration, value, "check")])
        number += 1
    assert len(order) <= 12
    assert abs(order.count(True) - order.count(False)) <= 1
    assert order[:2] in ([True, False], [False, True])
    verdict = tuner.checked(best)
    assert verdict.low <= verdict.gain <= verdict.high
    assert verdict.gain == pytest.approx(0.2, abs=0.08)


def test_several_checks_at_a_time_are_split_between_the_two() -> None:
    default: Configuration = PROBLEM.space.default()
    best: Configuration = {"n": 3, "huge": True}
    tuner = Tuner(PROBLEM, Method(algorithm="random", final_check=FinalCheck(max_trials=6)))
    found = tuner.check(best, 4)
    assert (found.count(best), found.count(default)) == (2, 2)
    pending = [
        TrialRecord(number, configuration, TrialState.ACTIVE, {}, origin="check")
        for number, configuration in enumerate(found, start=1)
    ]
    assert len(tuner.check(best, 4, pending)) == 2


def test_the_state_is_the_algorithms() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random"))
    tuner.load({"of": "an earlier process"})
    assert tuner.dump() == {"of": "an earlier process"}
    tuner.suggest(1, cursor=0)
    assert tuner.dump() is None


def test_the_cost_is_known_without_torch_and_scipy(programs_start: None) -> None:
    script = (
        "import sys\n"
        "from service.tuner.method import Method\n"
        "from service.tuner.tuner import Tuner\n"
        "from tests.unit.tuner.test_tuner import PROBLEM\n"
        "tuner = Tuner(PROBLEM, Method(algorithm='gp'))\n"
        "assert tuner.cost == 'COSTLY'\n"
        "tuner.recommend(costly=False)\n"
        "print([name for name in ('torch', 'scipy', 'botorch') if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=sys.path[0] or "."
    )
    assert ran.stdout.strip() == "[]"


NOISY = Problem.build(PROBLEM.space, PROBLEM.objectives, noisy=True)


def history() -> list[TrialRecord]:
    """Twenty configurations with three runs each, of which the more careless ones are faster at best."""
    return [
        finished(3 * n + run, {"n": n + 1, "huge": bool(n % 2)}, 20.0 - n + (2 * n if run == 2 else 0), origin)
        for n in range(20)
        for run, origin in enumerate(("suggested", "replicate", "replicate"))
    ]


@pytest.mark.parametrize("algorithm", ["ga", "sa", "smbo", "gp", "tpe", "cmaes"])
def test_the_search_follows_the_estimator(algorithm: str) -> None:
    """By the median the last configurations are the best, by the maximum the first ones."""

    def walk(estimator: str, **options: object) -> list[Configuration]:
        method = Method(algorithm=algorithm, resampling="none", estimator=estimator, estimator_options=options, seed=3)
        tuner = Tuner(NOISY, method)
        tuner.suggest(1, cursor=0)
        tuner.update(history())
        return [one.configuration for one in tuner.suggest(6, cursor=0).items]

    assert walk("median") == walk("median")
    assert walk("quantile", q=1.0) != walk("median")
    if algorithm == "smbo":
        assert walk("median", neighbours=0.3) != walk("median")


def test_the_search_learns_the_same_from_parts_of_the_history() -> None:
    method = Method(algorithm="ga", resampling="none", estimator="quantile", estimator_options={"q": 1.0}, seed=3)
    whole, parts = Tuner(NOISY, method), Tuner(NOISY, method)
    whole.update(history())
    for trial in history():
        parts.update([trial])
        parts.suggest(1, cursor=0)
    assert whole.suggest(5, cursor=0) == parts.suggest(5, cursor=0)
