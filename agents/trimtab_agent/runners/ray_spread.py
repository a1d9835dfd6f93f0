"""Spread the jobs of one configuration over nodes, so that a slow node does not look like a slow configuration.

A job that is compared with another one runs on the same node instead.

This is a preference: a job that would wait long for its node may run anywhere. Ray cannot move a waiting job, so a
second job for the same trial is submitted (see RayRunner).
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import JobSpec
from trimtab_agent.runners.ray_client import Dashboard, Node, RayError

logger = Logger(__name__)

# The label that Ray gives every node. Its value is the node's id.
NODE_LABEL = "ray.io/node-id"
# Seconds for which an answer about nodes is valid.
NODES_TIME = 30.0
# Seconds that a job waits for its node.
PATIENCE = 60.0
# Seconds that a job is held back while other jobs of its configuration are submitted but not started, because their
# nodes are not known before. Ray has no such preference for jobs, neither as a strategy nor as a placement group.
TURN_TIME = 10.0
TURN_INTERVAL = 0.1


@dataclass
class _Replicate:
    """A job of a configuration, and whether it is limited to some nodes."""

    configuration: str
    is_meant: bool
    since: float = field(default_factory=time.monotonic)


class Spread:
    """The replicates among this agent's jobs."""

    def __init__(self, dashboard: Dashboard, node_of: Callable[[Path], str]) -> None:
        """`node_of` returns the host name of a folder's job; "" if it has not started."""
        self._dashboard = dashboard
        self._node_of = node_of
        self._jobs: dict[Path, _Replicate] = {}
        self._impatient: set[Path] = set()
        self._nodes: Sequence[Node] = ()
        self._nodes_until = 0.0

    async def place(self, folder: Path, spec: JobSpec, wanted: Mapping[str, float]) -> Mapping[str, str]:
        """Return the label selector for a job that requests `wanted`: the nodes that have measured its configuration
        least often, or the job's own node. It is empty if the job is not a replicate and has no node, or if all nodes
        have measured it equally often."""
        if not (spec.replicates or spec.same_node) or folder in self._impatient:
            return {}
        # A job with a node of its own has nothing to do with other jobs.
        configuration = str(folder) if spec.same_node else spec.replicates
        others = self._others(folder, configuration)
        self._jobs[folder] = _Replicate(configuration, False)
        await self._until_begun(others)
        try:
            await self._look()
        except RayError as error:
            logger.info("the nodes are not known, replicates run anywhere for now", error=error)
            return {}
        usable = [
            node for node in self._nodes if all(node.resources.get(name, 0.0) >= much for name, much in wanted.items())
        ]
        if spec.same_node:
            chosen = [node.id for node in usable if node.host == spec.same_node]
        else:
            before = Counter(spec.measured_on)
            now = Counter(self._node_of(place) for place in self._others(folder, configuration))
            # A running job is often among those that the service has reported.
            used = {node.id: max(before[node.host], now[node.host]) for node in usable}
            chosen = [node for node, times in used.items() if times == min(used.values())]
        is_choice = 0 < len(chosen) < len(usable)
        self._jobs[folder] = _Replicate(configuration, is_choice)
        return {NODE_LABEL: f"in({','.join(chosen)})"} if is_choice else {}

    def _others(self, folder: Path, configuration: str) -> list[Path]:
        return [place for place, one in self._jobs.items() if one.configuration == configuration and place != folder]

    async def _until_begun(self, others: Sequence[Path]) -> None:
        """Wait until each of these jobs has started or ended, at most TURN_TIME seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TURN_TIME):
                while any(place in self._jobs and not self._node_of(place) for place in others):  # noqa: ASYNC110  files
                    await asyncio.sleep(TURN_INTERVAL)

    def is_late(self, folder: Path) -> bool:
        """Return whether a job has waited long enough for its node. It may then run anywhere."""
        mine = self._jobs.get(folder)
        if mine is None or not mine.is_meant or time.monotonic() - mine.since < PATIENCE:
            return False
        mine.is_meant = False
        self._impatient.add(folder)
        return True

    def forget(self, folder: Path) -> None:
        """Forget a job that has ended."""
        self._jobs.pop(folder, None)
        self._impatient.discard(folder)

    async def _look(self) -> None:
        if time.monotonic() > self._nodes_until:
            self._nodes = await self._dashboard.machines()
            self._nodes_until = time.monotonic() + NODES_TIME
