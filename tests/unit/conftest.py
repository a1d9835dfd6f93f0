"""Fixtures for tests of the domain, on a real PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from service.tenancy.principal import Principal


@pytest.fixture
def principal(transactional_db: None) -> Principal:
    """A caller in a new tenant. The writes of the test are committed, so that other threads see them."""
    from tests.factories.domain import make_principal

    return make_principal()


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the minute of quotas a day, because an ask in a new minute would query the usage. Request it first."""
    from service.trials import quotas

    monkeypatch.setattr(quotas, "MINUTE", quotas.DAY)
    monkeypatch.setattr(quotas, "LONGEST_SECONDS", quotas.DAY)
