"""A running service that is there to be ill-treated, with something in it for requests to be about."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest

from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.fuzz.world import World, furnish

# A line for each request would be most of the report of a failure.
logging.getLogger("httpx").setLevel(logging.WARNING)
# An agent that a test leaves alone for so long is still online.
_ENVIRONMENT = {"TRIMTAB_LEASE_SECONDS": "3600"}


@contextmanager
def _world(folder: Path, size: str) -> Iterator[World]:
    with (
        EmbeddedService(folder, _ENVIRONMENT) as service,
        grpc.insecure_channel(service.grpc_address) as plain,
        httpx.Client(base_url=service.http_url, timeout=PATIENCE) as http,
    ):
        yield World(service, furnish(service, size), plain, http)


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[World]:
    """A service with a few objects of each kind."""
    with _world(tmp_path_factory.mktemp("fuzz"), "small") as found:
        yield found


@pytest.fixture
def full_world(tmp_path: Path, programs_start: None) -> Iterator[World]:
    """A service with many records, studies of all kinds and large ones."""
    with _world(tmp_path / "service", "large") as found:
        found.more.append(found.large(5000))
        yield found
