"""A client of the REST interface, and studies to use it on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from service.results import summaries
from service.tenancy import access

Json = dict[str, Any]

SPEC: Json = {
    "space": {
        "parameters": [
            {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
            {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4},
        ],
    },
    "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
    "algorithm": {"name": "random"},
    "seed": 7,
}


class Api:
    """Sends JSON with a bearer token; gives back status and JSON."""

    def __init__(self, token: str = "test-token") -> None:
        self.client = Client(headers={"Authorization": f"Bearer {token}"})

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Json]:
        """Make a call. `path` is below /api/v1. Bytes are sent unchanged."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = self.client.generic(method, f"/api/v1{path}", content, "application/json")
        return response.status_code, response.json() if response.content else {}

    def ok(self, method: str, path: str, body: object = None) -> Json:
        """Make a call that must succeed, and return its answer."""
        status, answer = self(method, path, body)
        assert status < 300, answer
        return answer

    def refused(self, status: int, code: str, method: str, path: str, body: object = None) -> Json:
        """Make a call that must be refused with this status and code, and return the problem document."""
        found, answer = self(method, path, body)
        assert (found, answer.get("status"), answer.get("code")) == (status, status, code), answer
        assert answer["type"] == f"urn:trimtab:error:{code}"
        assert {"title", "detail", "retryable", "data"} <= answer.keys()
        return answer


def summarise_all() -> None:
    """Sweep until the summaries of all studies are up to date. One sweep works for at most half a second."""
    while access.across("old_summaries", 1):
        summaries.refresh()


@pytest.fixture
def api(db: None) -> Api:
    """The REST interface, for the administrator."""
    return Api()


@pytest.fixture
def study(api: Api) -> Callable[..., str]:
    """Creates a study and gives its name; keywords change its spec."""

    def create(name: str = "s", **changes: Any) -> str:
        api.ok("POST", "/studies", {"name": name, "spec": {**SPEC, **changes}})
        return name

    return create
