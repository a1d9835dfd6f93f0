"""Principals, specs and algorithms for tests of the domain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest
from django.db import connection

from service.algorithms.base import Algorithm, Batch, Cost
from service.core.errors import JsonValue, TrimtabError
from service.core.space import Scalar
from service.core.trial import TrialRecord
from service.studies.models import Trial as Row
from service.tenancy.models import Tenant
from service.tenancy.principal import Principal, Role
from service.trials.ask import ask as ask_trials
from service.trials.tell import Reported, complete_trial
from service.workers import compute
from tests.factories.patience import PATIENCE

SECONDS = {"metric": "seconds", "goal": "minimize"}


def make_principal(role: Role = Role.ADMIN) -> Principal:
    """Return a caller in a new tenant."""
    tenant = Tenant._default_manager.create(slug=f"test-{uuid4().hex[:12]}")
    return Principal(tenant.pk, "tester", role)


def study_name() -> str:
    return f"study-{uuid4().hex[:12]}"


def make_spec(**changes: Any) -> dict[str, Any]:
    """Return a spec with two numeric parameters, one metric, the algorithm `random` and no budget."""
    return {
        "space": {
            "parameters": [
                {"name": "x", "type": "float", "min": 0.0, "max": 1.0},
                {"name": "n", "type": "int", "min": 1, "max": 16},
            ],
            "constraints": [],
        },
        "objectives": [SECONDS],
        "algorithm": {"name": "random", "options": {}},
        "seed": 1,
        **changes,
    }


def make_execution(**changes: Any) -> dict[str, Any]:
    """Return the execution of a study that an agent with `make_component` can run."""
    return {"component": "compiler", "digest": "", "application": "small", "parallelism": 1, **changes}


def make_component(**changes: Any) -> dict[str, Any]:
    return {
        "name": "compiler",
        "digest": "d1",
        "applications": ["small"],
        "description": "",
        "space": [],
        "metrics": ["seconds"],
        **changes,
    }


def ask(principal: Principal, study: str, count: int = 1, **more: Any) -> list[Row]:
    return ask_trials(principal, study, count=count, **more).trials


def tell(principal: Principal, study: str, trial: Row, seconds: float = 1.0) -> Reported:
    return complete_trial(principal, study, trial.number, metrics={"seconds": seconds})


def refused(code: str, call: Callable[[], object]) -> TrimtabError:
    """Make a call that must fail with this code, and return its error."""
    with pytest.raises(TrimtabError) as caught:
        call()
    assert caught.value.code == code, caught.value
    return caught.value


class ScriptedAlgorithm(Algorithm):
    """A costly algorithm that tests can look into, hold up and break."""

    cost: ClassVar[Cost] = Cost.COSTLY
    uses_history: ClassVar[bool] = True

    # Of all instances, in the order of the calls; `reset` empties them.
    fed: ClassVar[list[int]] = []
    pending: ClassVar[list[list[int]]] = []
    loaded: ClassVar[list[JsonValue]] = []
    error: ClassVar[Exception | None] = None
    most: ClassVar[int | None] = None
    gate: ClassVar[threading.Event] = threading.Event()
    entered: ClassVar[threading.Event] = threading.Event()

    @classmethod
    def reset(cls) -> None:
        cls.fed, cls.pending, cls.loaded = [], [], []
        cls.error, cls.most = None, None
        cls.gate, cls.entered = threading.Event(), threading.Event()
        cls.gate.set()

    def update(self, finished: Sequence[TrialRecord]) -> None:
        self.fed.extend(trial.number for trial in finished)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] | None = None,
    ) -> Batch:
        self.pending.append([trial.number for trial in pending])
        self.entered.set()
        assert self.gate.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        given = count if self.most is None else max(0, min(count, self.most - cursor))
        return Batch(
            tuple({"x": 1 / (cursor + index + 2), "n": 1, **(fixed or {})} for index in range(given)),
            cursor + given,
            given < count,
        )

    def dump(self) -> JsonValue:
        return {"seen": len(self.fed)}

    def load(self, state: JsonValue) -> None:
        self.loaded.append(state)


@contextmanager
def computing(operation_id: UUID) -> Iterator[None]:
    """Another worker computes the operation: it waits inside its `ScriptedAlgorithm` until the end."""
    ScriptedAlgorithm.gate.clear()
    ScriptedAlgorithm.entered.clear()

    def work() -> None:
        try:
            compute.compute(operation_id)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert ScriptedAlgorithm.entered.wait(PATIENCE)
    yield
    ScriptedAlgorithm.gate.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
