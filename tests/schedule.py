"""Hooks of pytest and xdist that decide which process runs which test file, and when."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# Files that run one after the other in one process, because they share a server that is slow to start. A head of Ray
# also costs a twentieth of a core as long as it lives.
TOGETHER = {
    "tests/e2e/console/": "console",
    "tests/e2e/keycloak/": "keycloak",
    "tests/agent/matching/slurm/": "slurm",
    "tests/sdk/test_ray.py": "ray",
    "tests/agent/ray_runner/": "ray",
    "tests/agent/test_with_service.py": "ray",
    "tests/contract/runners/": "ray",
    "tests/e2e/test_snippets.py": "ray",
}
# What takes longest begins first, so that no process is left with a long file at the end. The order is by measured
# time (`make test ARGS=--durations=100`).
LONGEST_FIRST = (
    "tests/e2e/keycloak/",
    "tests/e2e/console/",
    "tests/agent/workloads/apache_gcc/test_trials.py",
    "tests/e2e/test_console_analysis.py",
    "tests/e2e/test_runner_faults.py",
    "tests/e2e/test_demo.py",
    "tests/sdk/test_ray.py",
    "tests/e2e/test_faults.py",
    "tests/agent/workloads/small_read_optimizer/test_measure.py",
    "tests/e2e/test_compose.py",
    "tests/agent/ray_runner/",
    "tests/e2e/test_embedded.py",
    "tests/agent/test_with_service.py",
    "tests/agent/workloads/",
    "tests/e2e/",
    "tests/fuzz/",
    "tests/agent/slurm_runner/",
    "tests/contract/runners/",
    "tests/agent/",
    "tests/sdk/",
    "tests/rpc/",
    "tests/api/",
    "tests/",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""

    def rank(item: pytest.Item) -> int:
        return next(rank for rank, prefix in enumerate(LONGEST_FIRST) if item.nodeid.startswith(prefix))

    items.sort(key=rank)


class _TogetherScheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Give a process one file at a time, or all files of one group of TOGETHER."""

    def _split_scope(self, nodeid: str) -> str:
        found = (group for prefix, group in TOGETHER.items() if nodeid.startswith(prefix))
        return next(found, super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep the groups of TOGETHER together where files are kept together."""
    return _TogetherScheduling(config, log) if config.getoption("dist") == "loadfile" else None
