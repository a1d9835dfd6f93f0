"""Calls of a client and the work of a worker, for tests of policies in studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from service.core.prediction import Prediction
from service.core.space import Configuration
from service.planning.create import create_study
from service.studies import selectors
from service.studies.models import Operation, Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import Reported, complete_trial
from service.workers import compute
from tests.factories.domain import ScriptedAlgorithm, make_spec, study_name


class Predicting(ScriptedAlgorithm):
    """A costly algorithm that believes in small values of x, whatever was measured.

    With one objective, it takes runs of 10 s and less for lucky ones.
    """

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        found = self.predictions(configurations)
        return replace(found[0], mean=10.0 + found[0].mean, noise=5.0) if len(found) == 1 else None

    def predictions(self, configurations: Sequence[Configuration]) -> Sequence[Prediction]:
        mean = np.array([float(one["x"]) for one in configurations])
        return [Prediction(mean, np.full(len(mean), 0.1), 0.1) for _ in self.problem.objectives]


def with_default(**changes: Any) -> dict[str, Any]:
    """Like `make_spec`, with a default: x 0.5, n 4."""
    spec = make_spec(**changes)
    spec["space"]["parameters"][0]["default"] = 0.5
    spec["space"]["parameters"][1]["default"] = 4
    return spec


def create(principal: Principal, spec: Mapping[str, Any]) -> str:
    return create_study(principal, study_name(), spec).name


def get(principal: Principal, name: str) -> Study:
    return selectors.get_study(principal, name)


def ask(principal: Principal, name: str, count: int = 1) -> list[Trial]:
    detail = ask_trials(principal, name, count=count)
    if detail.operation.state == "PENDING":
        work(principal)
        detail = selectors.get_operation(principal, detail.operation.id)
    assert detail.operation.state == "SUCCEEDED", detail.operation.error_message
    return detail.trials


def work(principal: Principal) -> None:
    """Run the workers' tasks until none is left."""
    for _ in range(10):
        pending = access.rows(Operation, principal).filter(state="PENDING").order_by("created_at").first()
        if pending is None:
            return
        compute.compute(pending.id)


def tell(principal: Principal, name: str, trial: Trial, seconds: float) -> Reported:
    return complete_trial(principal, name, trial.number, metrics={"seconds": seconds})


def seconds_of(trial: Trial) -> float:
    """Without noise: the default takes 10 s, x above a half 20 % less."""
    return 8.0 if trial.params["x"] > 0.5 else 10.0


def check_to_the_end(principal: Principal, name: str) -> list[Trial]:
    checks: list[Trial] = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        assert trial.origin == "check"
        checks.append(trial)
        assert len(checks) <= 20
        tell(principal, name, trial, seconds_of(trial))
    return checks
