"""No broker, and an algorithm that the test directs."""

from __future__ import annotations

import pytest

from service.algorithms import registry
from service.platform.lru_cache import LruCache
from service.trials import messages, tuners
from tests.unit.trials.policies.calls import Predicting


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the broker by a list, and return it."""
    monkeypatch.setattr(tuners, "_learners", LruCache(10))
    sent: list[str] = []
    monkeypatch.setattr(messages, "send", lambda operation_id: sent.append(str(operation_id)))
    return sent


@pytest.fixture
def predicting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gp` is an algorithm that the test directs."""
    Predicting.reset()
    create = registry.create
    monkeypatch.setattr(
        registry,
        "create",
        lambda name, problem, **more: Predicting(problem, **more) if name == "gp" else create(name, problem, **more),
    )
