"""The engine of a worker: BoTorch's models, acquisition functions and optimisers compute its suggestions."""

from __future__ import annotations

import logging

import pytest
from botorch.acquisition.analytic import AnalyticAcquisitionFunction

from service.algorithms.gp import acquisition
from service.logger import Message
from service.planning.create import create_study
from service.studies import selectors
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.ask import ask as ask_trials
from service.trials.tell import complete_trial
from service.workers import compute
from tests.factories.domain import make_spec, study_name

LOGGER = "service.algorithms.gp.model_based"


@pytest.mark.parametrize("algorithm", ["auto", "gp"])
def test_a_worker_suggests_with_botorch(
    principal: Principal, algorithm: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(messages, "send", lambda _: None)
    caplog.set_level(logging.DEBUG, LOGGER)
    study = create_study(principal, study_name(), make_spec(algorithm={"name": algorithm})).name
    for _ in range(9):
        asked = ask_trials(principal, study)
        compute.compute(asked.operation.id)
        (trial,) = selectors.get_operation(principal, asked.operation.id).trials
        complete_trial(principal, study, trial.number, metrics={"seconds": 1.0 + float(trial.params["x"])})
    logged = [record.msg for record in caplog.records if record.name == LOGGER]
    assert logged
    for message in logged:
        assert isinstance(message, Message)
        fields = message.fields
        assert (fields["optimizer"], fields["model"]) == ("optimize_acqf_mixed_alternating", "SingleTaskGP")
        assert issubclass(getattr(acquisition, str(fields["acquisition"])), AnalyticAcquisitionFunction)
