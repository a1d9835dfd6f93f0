"""Sample data: two small studies of a simulated web server, which the service itself measures.

They show all pages of the console before a system is connected. The sweep takes one step of each study every two
seconds. All that a step needs is in the database, so the end of a process or of a browser stops nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from service.core.errors import AlreadyExists, Conflict, NotFound, ResourceExhausted
from service.core.lifecycle import OperationState, StudyState, TrialState
from service.core.space import Configuration
from service.planning.create import create_study, delete_study, update_state
from service.studies.isolated import isolated
from service.studies.models import Operation, Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tell
from service.trials.ask import ask

NAME, COMPARED = "sample", "sample-random"
_ALGORITHMS = {NAME: "smbo", COMPARED: "random"}
# The studies of one sweep. Where there are more, the sweep chooses at random.
_MOST_STUDIES = 20
_AT_ONCE = 4
# Measurements of a trial before its last: the simulated server warms up.
_STEPS = 4
# After so many failed computations a study ends.
_MOST_FAILED = 5
_CLIENT = "sample data"
# This trial fails, so that the sample also shows how failures look.
_FAILING = 17
_FAILURE = "The simulated server ended with exit code 137: its memory was exhausted before the first request."
_COMPRESSION = {"none": 0.25, "fast": 0.0, "strong": 0.6}
_SPEC: Mapping[str, Any] = {
    "description": "Sample data: the service itself makes the measurements, with a formula and some noise.",
    "space": {
        "parameters": [
            {"name": "threads", "type": "int", "min": 1, "max": 32, "default": 4},
            {"name": "cache_mb", "type": "ordinal", "values": [16, 32, 64, 128, 256], "default": 16},
            {"name": "compression", "type": "categorical", "values": [*_COMPRESSION], "default": "strong"},
            {"name": "keep_alive", "type": "bool", "default": False},
        ]
    },
    "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
    "budget": {"max_trials": 40},
    "final_check": {"max_trials": 12, "effects": 0},
    "seed": 1,
}


def find(principal: Principal) -> Sequence[Study]:
    """Return the studies with sample data that the tenant has."""
    return list(access.rows(Study, principal).filter(sample=True).order_by("name"))


def create(principal: Principal) -> Sequence[Study]:
    """Create the studies with sample data that the tenant lacks, and return all. A second call changes nothing.

    Raises AlreadyExists (`study_exists`) if another study has the name of one, ResourceExhausted (`quota_exceeded`).
    """
    for name, algorithm in _ALGORITHMS.items():
        spec = {**_SPEC, "algorithm": {"name": algorithm}}
        try:
            study = create_study(principal, name, spec, tags=["sample"], load_if_exists=True)
        except Conflict as error:
            if error.code != "study_differs":
                raise
            raise AlreadyExists(
                "study_exists", f"A study {name!r} exists, and it is no sample data. Delete it first."
            ) from None
        access.rows(Study, principal).filter(pk=study.pk, sample=False).update(sample=True)
    return find(principal)


def delete(principal: Principal) -> None:
    """Delete the studies with sample data. A second call changes nothing."""
    for study in find(principal):
        delete_study(principal, study.name)


def measure() -> None:
    """Take one step of each study with sample data that runs and waits for no worker."""
    for tenant_id, study_id in access.across("sample_studies", _MOST_STUDIES):
        isolated(partial(_measure, Principal.system(tenant_id), study_id), tenant_id, study_id)


def _measure(principal: Principal, study_id: int) -> None:
    study = access.rows(Study, principal).filter(pk=study_id).first()
    if study is not None:
        # A quota or a final check in preparation delays the step. The study may have ended or been deleted.
        with suppress(Conflict, NotFound, ResourceExhausted):
            _step(principal, study)


def _step(principal: Principal, study: Study) -> None:
    """Report the trials of the step before, and ask for the next ones."""
    for trial in (
        access.rows(Trial, principal)
        .filter(study_id=study.pk, state=TrialState.ACTIVE, client_id=_CLIENT)
        .order_by("number")
    ):
        _report(principal, study.name, trial)
    failed = access.rows(Operation, principal).filter(study_id=study.pk, state=OperationState.FAILED)
    if failed.count() >= _MOST_FAILED:
        update_state(principal, study.name, StudyState.ABORTED, reason="The suggestions cannot be computed.")
        return
    ask(principal, study.name, count=_AT_ONCE, client_id=_CLIENT)


def _report(principal: Principal, study: str, trial: Trial) -> None:
    if (study, trial.number) == (NAME, _FAILING):
        tell.fail_trial(principal, study, trial.number, infeasible=False, reason=_FAILURE)
        return
    noise = random.Random(f"{study} {trial.number}")
    for step in range(1, _STEPS):
        warm_up = 1 + 0.8 * 0.4**step
        tell.report_measurement(
            principal, study, trial.number, step=step, metrics={"seconds": simulated(trial.params, noise) * warm_up}
        )
    tell.complete_trial(principal, study, trial.number, metrics={"seconds": simulated(trial.params, noise)})


def simulated(params: Configuration, noise: random.Random) -> float:
    """Return the simulated time of a configuration in seconds, with up to 2 % of noise.

    An edit of the space may have removed a parameter: then its part is zero.
    """
    busy = 0.35 * abs(math.log2(float(params.get("threads", 12)) / 12))
    cache = 0.5 * (1 - math.log2(float(params.get("cache_mb", 256)) / 16) / 4)
    compression = _COMPRESSION.get(str(params.get("compression")), 0.0)
    seconds = 1.2 + busy + cache + compression + (0.0 if params.get("keep_alive", True) else 0.3)
    return seconds * noise.uniform(0.98, 1.02)
