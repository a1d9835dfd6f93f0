"""A client of the shared service, and names for studies of one's own."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from trimtab.study import Study


@pytest.fixture
def client(embedded_service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token, retry_seconds=PATIENCE) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A study's name that no other test uses."""
    return f"sdk-{uuid.uuid4().hex[:10]}"


SPACE = [
    trimtab.Float("x", 1e-3, 10, log=True),
    trimtab.Int("n", 1, 16, step=1),
    trimtab.Ordinal("block", [4, 16, 64, 256]),
    trimtab.Categorical("alg", ["a", "b"]),
    trimtab.Bool("huge"),
]


@pytest.fixture
def study(client: trimtab.Client, name: str) -> Study:
    """A study of every kind of parameter with a constraint, by the quickest algorithm."""
    return make_study(client, name)


def make_study(client: trimtab.Client, name: str, **changes: Any) -> Study:
    arguments: dict[str, Any] = {
        "space": SPACE,
        "objectives": [trimtab.Minimize("seconds")],
        "constraints": ["n * 4 <= block"],
        "algorithm": "random",
        "seed": 0,
    }
    return client.create_study(name, **(arguments | changes))
