"""Downloads of a service that runs."""

from __future__ import annotations

import httpx
import pytest

from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService

# More than a web process has connections to the database (TRIMTAB_DATABASE_POOL).
MANY = 20


@pytest.mark.parametrize("path", ["audit/export", "tenant/export"])
def test_a_download_gives_its_connection_to_the_database_back(embedded_service: EmbeddedService, path: str) -> None:
    headers = {"Authorization": f"Bearer {embedded_service.token}"}
    with httpx.Client(base_url=f"{embedded_service.http_url}/api/v1", headers=headers, timeout=PATIENCE) as client:
        assert {client.get(f"/{path}").status_code for _ in range(MANY)} == {200}
        assert client.get("/studies").status_code == 200
