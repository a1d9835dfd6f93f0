"""Fixtures for tests of workers, without a broker."""

from __future__ import annotations

import pytest

from service.algorithms import registry
from service.planning.create import create_study
from service.platform.lru_cache import LruCache
from service.tenancy.principal import Principal
from service.trials import messages, tuners
from tests.factories.domain import ScriptedAlgorithm, make_spec, study_name


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`gp` is an algorithm that the test directs; what would be enqueued is written down, for no broker is needed."""
    ScriptedAlgorithm.reset()
    monkeypatch.setattr(
        registry,
        "create",
        lambda name, problem, *, seed, options: ScriptedAlgorithm(problem, seed=seed, options=options),
    )
    monkeypatch.setattr(tuners, "_learners", LruCache(10))
    sent: list[str] = []
    monkeypatch.setattr(messages, "send", lambda operation_id: sent.append(str(operation_id)))
    return sent


@pytest.fixture
def study(principal: Principal) -> str:
    return create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name
