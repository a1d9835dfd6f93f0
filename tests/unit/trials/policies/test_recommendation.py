"""The recommended configuration of a study."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict

import pytest

from service.algorithms import registry
from service.core.errors import InvalidInput
from service.core.metrics import LARGEST
from service.core.space import Configuration
from service.results import analysis
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.models import DesignerState
from service.trials.tell import complete_trial
from tests.factories.domain import make_spec
from tests.unit.trials.policies.calls import ask, create, get, tell, work


@pytest.mark.usefixtures("predicting")
def test_the_posterior_recommends_and_not_the_luckiest_run(principal: Principal) -> None:
    name = create(principal, make_spec(algorithm={"name": "gp"}, budget={"max_trials": 4}, resampling={"name": "none"}))
    for trial in ask(principal, name, 4):
        tell(principal, name, trial, 1.0 - trial.params["x"])
    # The search is over, and a worker looks at all results once more.
    work(principal)
    study = get(principal, name)
    assert study.state == "COMPLETED"
    found = analysis.analyse(principal, study)
    assert found.recommendation is not None
    assert found.recommendation.configuration["x"] == 0.2, "though it was the slowest"
    # The posterior expects more than was ever measured. No measurement was repeated, so that the noise is unknown and
    # the value has no interval.
    assert (found.recommendation.value, found.recommendation.low) == (0.8, None)
    assert [one.numbers for one in found.best] == [[4]]
    assert [trial.number for trial in analysis.best_trials(principal, study, found)] == [4]
    stored = access.rows(DesignerState, principal).get(study_id=study.pk)
    assert stored.recommendation is not None
    assert stored.recommendation["revision"] <= study.revision


@pytest.mark.usefixtures("predicting")
def test_a_better_result_that_no_worker_has_looked_at_is_recommended(principal: Principal) -> None:
    """No further ask may follow, so the last reported result has to be considered without one."""
    name = create(principal, make_spec(algorithm={"name": "gp"}, resampling={"name": "none"}))

    def recommended() -> Configuration:
        found = analysis.analyse(principal, get(principal, name)).recommendation
        assert found is not None
        return found.configuration

    for trial in ask(principal, name, 3):
        tell(principal, name, trial, trial.params["x"])
    later = ask(principal, name, 2)
    before = recommended()
    tell(principal, name, later[0], 7.0)
    assert recommended() == before
    tell(principal, name, later[1], -7.0)
    assert recommended() == later[1].params


def test_outcome_constraints_require_their_metrics_and_limit_the_best_trials(principal: Principal) -> None:
    name = create(principal, make_spec(outcome_constraints=["mb <= 10"]))
    first, second = ask(principal, name, 2)
    with pytest.raises(InvalidInput) as caught:
        tell(principal, name, first, 1.0)
    assert caught.value.data["field"] == "metrics.mb"
    complete_trial(principal, name, first.number, metrics={"seconds": 1.0, "mb": 99})
    complete_trial(principal, name, second.number, metrics={"seconds": 2.0, "mb": 1})
    assert [one.numbers for one in analysis.analyse(principal, get(principal, name)).best] == [[2]]


@pytest.mark.parametrize("name", registry.names())
def test_the_largest_numbers_can_be_told_with_every_algorithm(principal: Principal, name: str) -> None:
    study = create(principal, make_spec(algorithm={"name": name}, noisy=True, budget={"max_trials": 20}))
    reported = itertools.cycle([LARGEST, -LARGEST, 1.0, LARGEST])
    for _ in range(4):
        for trial in ask(principal, study, 2):
            tell(principal, study, trial, next(reported))
    work(principal)
    found = analysis.analyse(principal, get(principal, study))
    assert found.recommendation is not None
    numbers = [asdict(found.recommendation), [asdict(one) for one in found.objectives]]
    assert json.dumps(numbers, allow_nan=False)
