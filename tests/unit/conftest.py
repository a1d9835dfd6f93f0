"""Fixtures for tests of the domain, on a real PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from service.tenancy.principal import Principal


@pytest.fixture
def principal(transactional_db: None) -> Principal:
    """A caller with a tenant of its own. What the test does is committed, so that other threads see it."""
    from tests.factories.domain import make_principal

    return make_principal()


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new minute begins, in which an ask would look at what its tenant has used; ask for it first of all."""
    from service.trials import quotas

    monkeypatch.setattr(quotas, "MINUTE", quotas.DAY)
    monkeypatch.setattr(quotas, "LONGEST_SECONDS", quotas.DAY)
