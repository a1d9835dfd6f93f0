"""An agent, for tests of the fleet."""

from __future__ import annotations

import pytest

from service.tenancy.principal import Principal
from tests.factories.fleet import AGENT, register


@pytest.fixture
def agent(principal: Principal) -> str:
    register(principal)
    return AGENT
