"""Bounds of the containers in the Compose file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

COMPOSE: dict[str, Any] = yaml.safe_load((Path(__file__).resolve().parents[3] / "deploy/compose.yaml").read_text())
# The first runs once, the second keeps files in the memory that is left.
WITHOUT_MEMORY_LIMIT = {"migrate", "postgres"}


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_has_bounds(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["pids_limit"] > 0
    assert ("mem_limit" in service) is (name not in WITHOUT_MEMORY_LIMIT)
    assert all("size=" in mount for mount in service["tmpfs"])
