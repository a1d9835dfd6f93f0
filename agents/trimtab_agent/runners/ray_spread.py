"""Which node each job of one configuration is meant for, so that a slow node does not pass for a slow configuration.

This is a wish: a job that would wait for long for its node is let in anywhere. Ray cannot move one that waits, so that
is done by a second job for the same trial (see RayRunner).
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab_agent.runners.base import JobSpec
from trimtab_agent.runners.ray_client import Dashboard, Node, RayError

logger = logging.getLogger(__name__)

# the label that Ray gives every node, whose value is the node's number
NODE_LABEL = "ray.io/node-id"
# seconds for which an answer about nodes holds
NODES_TIME = 30.0
# seconds that a job waits for its node
PATIENCE = 60.0
# seconds for which a job is held back while others of its configuration have been submitted and have not begun: only
# then is it known which node is theirs. Ray itself has no such wish for jobs, neither a strategy nor a placement group.
TURN_TIME = 10.0
TURN_INTERVAL = 0.1


@dataclass
class _Replicate:
    """One of the jobs of a configuration, and whether it is meant for some nodes alone."""

    configuration: str
    is_meant: bool
    since: float = field(default_factory=time.monotonic)


class Spread:
    """The jobs of this agent that are replicates."""

    def __init__(self, dashboard: Dashboard, node_of: Callable[[Path], str]) -> None:
        """`node_of`: the machine where a folder's job runs or ran; empty: it has not begun."""
        self._dashboard = dashboard
        self._node_of = node_of
        self._jobs: dict[Path, _Replicate] = {}
        self._impatient: set[Path] = set()
        self._nodes: Sequence[Node] = ()
        self._nodes_until = 0.0

    async def place(self, folder: Path, spec: JobSpec, wanted: Mapping[str, float]) -> Mapping[str, str]:
        """The label that the node of a job shall have that asks for so much: those of the nodes that have measured its
        configuration least often. Empty where the job is no replicate, or all have measured it as often."""
        if not spec.replicates or folder in self._impatient:
            return {}
        others = self._others(folder, spec.replicates)
        self._jobs[folder] = _Replicate(spec.replicates, False)
        await self._until_begun(others)
        try:
            await self._look()
        except RayError as error:
            logger.info("%s: replicates run anywhere for now", error)
            return {}
        usable = [
            node for node in self._nodes if all(node.resources.get(name, 0.0) >= much for name, much in wanted.items())
        ]
        before = Counter(spec.measured_on)
        now = Counter(self._node_of(place) for place in self._others(folder, spec.replicates))
        # a job that runs is often among those that the service has told of
        used = {node.id: max(before[node.host], now[node.host]) for node in usable}
        least = [node for node, times in used.items() if times == min(used.values())]
        is_choice = len(least) < len(usable)
        self._jobs[folder] = _Replicate(spec.replicates, is_choice)
        return {NODE_LABEL: f"in({','.join(least)})"} if is_choice else {}

    def _others(self, folder: Path, configuration: str) -> list[Path]:
        return [place for place, one in self._jobs.items() if one.configuration == configuration and place != folder]

    async def _until_begun(self, others: Sequence[Path]) -> None:
        """Returns once each of these jobs has begun or is over, after TURN_TIME at the latest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TURN_TIME):
                while any(place in self._jobs and not self._node_of(place) for place in others):  # noqa: ASYNC110  files
                    await asyncio.sleep(TURN_INTERVAL)

    def is_late(self, folder: Path) -> bool:
        """Whether a job that waits has waited for its node for long enough; it is then let in anywhere."""
        mine = self._jobs.get(folder)
        if mine is None or not mine.is_meant or time.monotonic() - mine.since < PATIENCE:
            return False
        mine.is_meant = False
        self._impatient.add(folder)
        return True

    def forget(self, folder: Path) -> None:
        """The job is over."""
        self._jobs.pop(folder, None)
        self._impatient.discard(folder)

    async def _look(self) -> None:
        if time.monotonic() > self._nodes_until:
            self._nodes = await self._dashboard.machines()
            self._nodes_until = time.monotonic() + NODES_TIME
