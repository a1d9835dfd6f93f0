"""NaN and infinity mean the same for each way to tell a result."""

import math
import sys
from collections.abc import Callable

import pytest

from tests.sdk.conftest import make_study
from trimtab import Client, Study
from trimtab.errors import InvalidInput

Metrics = dict[str, float]


def tell(study: Study, metrics: Metrics) -> None:
    [trial] = study.ask()
    told = study.tell(trial, metrics)
    assert study.tell(trial, metrics) == told, "the same result again changes nothing"


def tell_many(study: Study, metrics: Metrics) -> None:
    study.tell_many([(study.ask()[0], metrics)])


def add_trial(study: Study, metrics: Metrics) -> None:
    study.add_trial({"x": 0.5, "n": 1, "block": 4, "alg": "a", "huge": False}, metrics)


def optimize(study: Study, metrics: Metrics) -> None:
    study.optimize(lambda params: metrics, n_trials=1, progress=False)


def ray(study: Study, metrics: Metrics) -> None:
    from trimtab.ray import TrimtabSearch

    search = TrimtabSearch(study)
    search.suggest("one")
    search.on_trial_complete("one", {**metrics, "training_iteration": 1})


@pytest.mark.parametrize("way", [tell, tell_many, add_trial, optimize, ray])
def test_a_metric_that_is_not_finite(client: Client, name: str, way: Callable[[Study, Metrics], None]) -> None:
    study = make_study(client, name, outcome_constraints=["watts < 100"])
    cases = [
        ({"seconds": math.nan, "watts": 80.0}, "The metric seconds is NaN."),
        ({"seconds": -math.inf, "watts": 80.0}, "The metric seconds is negative infinite."),
        (
            {"seconds": math.nan, "watts": math.inf},
            "The metric seconds is NaN. The metric watts is infinite.",
        ),
        ({"seconds": 1.0, "watts": math.nan}, "The metric watts is NaN."),
    ]
    for number, (metrics, reason) in enumerate(cases, 1):
        way(study, metrics)
        trial = study.trial(number)
        assert (trial.state, trial.reason, trial.metrics) == ("INFEASIBLE", reason, {})
    way(study, {"seconds": 1.0, "watts": 80.0, "spare": math.nan})
    last = study.trial(len(cases) + 1)
    assert (last.state, last.reason) == ("COMPLETED", "")
    assert last.metrics == {"seconds": 1.0, "watts": 80.0}, "no constraint names the other metric"


def test_a_function_that_returns_nan_is_reported(client: Client, name: str, caplog: pytest.LogCaptureFixture) -> None:
    make_study(client, name).optimize(lambda params: math.nan, n_trials=1, progress=False)
    assert f'trial is infeasible study={name} trial=1 reason="The metric seconds is NaN."' in caplog.messages


@pytest.mark.parametrize("way", [tell, tell_many, add_trial])
def test_a_metric_that_is_too_large_for_a_measurement(
    client: Client, name: str, way: Callable[[Study, Metrics], None]
) -> None:
    study = make_study(client, name)
    said = r"metrics\.seconds: 1\.79.*e\+308 is not allowed\. Use a number from -1e\+100"
    with pytest.raises(InvalidInput, match=said) as no:
        way(study, {"seconds": sys.float_info.max})
    assert no.value.code == "metric_too_large"
    way(study, {"seconds": 1e100})


def test_optimize_takes_a_configuration_with_such_a_metric_for_infeasible(client: Client, name: str) -> None:
    study = make_study(client, name)
    optimize(study, {"seconds": -1e155})
    trial = study.trial(1)
    assert trial.state == "INFEASIBLE"
    assert trial.reason.startswith("metrics.seconds: -1e+155 is not allowed. Use a number from -1e+100 to 1e+100")


def test_ray_takes_a_number_that_is_too_large_for_an_infinite_one(client: Client, name: str) -> None:
    study = make_study(client, name)
    ray(study, {"seconds": 1e155})
    trial = study.trial(1)
    assert (trial.state, trial.reason) == ("INFEASIBLE", "The metric seconds is infinite.")
