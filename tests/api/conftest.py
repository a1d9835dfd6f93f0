"""A client of the REST interface, and spaces to create studies with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

Json = dict[str, Any]

SPEC: Json = {
    "space": {
        "parameters": [
            {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
            {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4},
        ],
        "constraints": [],
    },
    "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
    "algorithm": {"name": "random"},
    "seed": 7,
}


class Api:
    """Sends JSON with a bearer token and gives back status and JSON."""

    def __init__(self, token: str = "test-token") -> None:
        self.client = Client(headers={"Authorization": f"Bearer {token}"} if token else None)

    def __call__(self, method: str, path: str, body: object = None, **options: Any) -> tuple[int, Json]:
        """`path` is below /api/v1."""
        response = self.client.generic(
            method, f"/api/v1{path}", b"" if body is None else _dumps(body), "application/json", **options
        )
        return response.status_code, response.json() if response.content else {}


def _dumps(body: object) -> bytes:
    import json

    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.fixture
def api(db: None) -> Api:
    """The REST interface, for the administrator."""
    return Api()


@pytest.fixture
def study(api: Api) -> Callable[..., str]:
    """Creates a study and gives its name: `study("name", budget={...})` changes the spec."""

    def create(name: str = "s", **changes: Any) -> str:
        status, body = api("POST", "/studies", {"name": name, "spec": {**SPEC, **changes}})
        assert status == 201, body
        return name

    return create
