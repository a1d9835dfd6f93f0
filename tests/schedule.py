"""Hooks of pytest and xdist that decide which process runs which test file, and when."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

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
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""

    def rank(item: pytest.Item) -> int:
        ranks = (rank for rank, prefix in enumerate(LONGEST_FIRST) if item.nodeid.startswith(prefix))
        return next(ranks, len(LONGEST_FIRST))

    items.sort(key=rank)


class _TogetherScheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Give a process one file at a time, or all files of one group of TOGETHER.

    If a process dies, xdist 3.8 gives all files that it ever had to others, also those that are done. The others then
    wait for ever for tests of these files, and each of them runs the test during which the first has died.
    """

    def _split_scope(self, nodeid: str) -> str:
        found = (group for prefix, group in TOGETHER.items() if nodeid.startswith(prefix))
        return next(found, super()._split_scope(nodeid))

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process and return the test during which it has died, or None. Others get what it has not begun."""
        units = self.assigned_work.pop(node)
        left = {scope: [test for test, is_done in unit.items() if not is_done] for scope, unit in units.items()}
        crashed = next((tests.pop(0) for tests in left.values() if tests), None)
        self.workqueue.update({scope: dict.fromkeys(tests, False) for scope, tests in left.items() if tests})
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a process one more unit. If it has died, others get the unit when its death is known (remove_node)."""
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process more if it needs more. It begins a test only when it also has the next one."""
        if node not in self.registered_collections:
            return  # it has not yet imported the tests
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep the groups of TOGETHER together where files are kept together."""
    return _TogetherScheduling(config, log) if config.getoption("dist") == "loadfile" else None
