"""Spread the jobs of one configuration over nodes, so that a slow node does not look like a slow configuration.

A job that is compared with another one runs on the same node instead.

This is a preference: a job may run anywhere if it cannot run elsewhere, or would wait long while a node is idle.
"""

import asyncio
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from trimtab_agent.files import write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.base import JobSpec, JobState, stored_spec
from trimtab_agent.runners.slurm_client import Job, Node, SlurmError

logger = Logger(__name__)

# A job's file: the nodes that it avoids, in sbatch's form.
KEPT_OFF = "kept-off"
# Seconds for which an answer of sinfo is valid.
NODES_TIME = 30.0
# Seconds that a job waits while a node that it avoids is idle.
PATIENCE = 60.0
# States of nodes that accept jobs, now or when others have ended.
TAKES_JOBS = {"idle", "mixed", "allocated", "completing", "planned"}
# Options of sbatch that select nodes, with their short forms.
NODE_OPTIONS = {"nodelist": "w", "exclude": "x", "nodefile": "F"}

Nodes = frozenset[str]
ANYWHERE: Nodes = frozenset()


@dataclass
class _Replicate:
    """A job of a configuration."""

    configuration: str
    measured_on: Counter[str]
    partitions: Sequence[str]
    # The nodes that it should use, and the nodes that it has; None: any node.
    meant_for: Nodes | None = None
    nodes: Sequence[str] = ()
    kept_off: Nodes = ANYWHERE
    since: float = field(default_factory=time.monotonic)
    given_up: bool = False


class Spread:
    """The replicates among this agent's jobs."""

    def __init__(self, options: Sequence[str]) -> None:
        """`options` are the administrator's options for every job."""
        self._options = options
        self._jobs: dict[Path, _Replicate] = {}
        self._nodes: Mapping[str, Node] = {}
        self._nodes_until = 0.0
        self._looking = asyncio.Lock()

    async def place(self, jobs: Sequence[tuple[Path, JobSpec]]) -> dict[Path, Nodes]:
        """Return the nodes that each of these jobs, which are submitted together, must avoid. Jobs that are not
        replicates and have no node to run on, or that select nodes themselves, avoid none."""
        found = {folder: ANYWHERE for folder, _ in jobs}
        groups: dict[str, list[Path]] = {}
        for folder, spec in jobs:
            self.forget(folder)
            if _given(self._options, spec, NODE_OPTIONS):
                continue
            if spec.same_node:
                found[folder] = await self._on_its_node(folder, spec)
            elif spec.replicates:
                self._jobs[folder] = self._replicate(folder, spec)
                groups.setdefault(spec.replicates, []).append(folder)
        for folders in groups.values():
            # A single first job needs no answer of sinfo.
            if len(folders) > 1 or self._jobs[folders[0]].measured_on or self._others(folders[0]):
                await self._divide(folders)
                found |= {folder: self._jobs[folder].kept_off for folder in folders}
        for folder, nodes in found.items():
            _note(folder, nodes)
        return found

    async def tend(self, folder: Path, job: Job) -> None:
        """Follow a job in its current state. Other jobs avoid the nodes where it runs, and it may run anywhere if it
        would never start otherwise."""
        mine = self._jobs.get(folder)
        if mine is None and not (mine := self._resumed(folder)):
            return
        if job.meaning.state is not JobState.QUEUED:
            mine.nodes = expand(job.nodes)
            return
        if mine.given_up or not (mine.kept_off or self._others(folder)):
            return
        wanted = await self._revised(folder, mine)
        if wanted != mine.kept_off:
            await self._keep_off(folder, mine, job, wanted)

    async def let_in(self, folder: Path, job: Job) -> bool:
        """Let a hopeless job run anywhere; return False if it may already."""
        mine = self._jobs.get(folder)
        if mine is None or not mine.kept_off:
            return False
        mine.given_up = True
        await self._keep_off(folder, mine, job, ANYWHERE)
        return True

    def give_up(self, folder: Path) -> None:
        """Let a job use any node, because Slurm refused it with the nodes chosen here."""
        if mine := self._jobs.get(folder):
            mine.given_up, mine.kept_off, mine.meant_for = True, ANYWHERE, None
            _note(folder, ANYWHERE)

    def forget(self, folder: Path) -> None:
        """Forget a job that has ended."""
        self._jobs.pop(folder, None)

    # -- choosing

    async def _on_its_node(self, folder: Path, spec: JobSpec) -> Nodes:
        """Return the nodes that a job must avoid: all but its own, unless that takes no jobs."""
        mine = self._jobs[folder] = self._replicate(folder, spec)
        usable = frozenset(await self._usable(mine.partitions))
        own = usable & frozenset(expand(spec.same_node))
        if own:
            mine.meant_for, mine.kept_off = own, usable - own
        return mine.kept_off

    async def _divide(self, folders: Sequence[Path]) -> None:
        """Assign different nodes to replicates that are submitted together, the least used first."""
        first = self._jobs[folders[0]]
        usable = list(await self._usable(first.partitions))
        used = self._used(folders[0], usable)
        for index, folder in enumerate(folders):
            if not usable:
                return
            least = _least_used(used)
            mine = self._jobs[folder]
            mine.meant_for = frozenset(least[:: min(len(least), len(folders) - index)])
            mine.kept_off = frozenset(usable) - mine.meant_for
            for node in mine.meant_for:
                used[node] += 1 / len(mine.meant_for)

    async def _revised(self, folder: Path, mine: _Replicate) -> Nodes:
        """Return the nodes that a waiting job must avoid now."""
        nodes = await self._usable(mine.partitions)
        if not nodes:
            return mine.kept_off
        if time.monotonic() - mine.since > PATIENCE and any(
            nodes[node].state in ("idle", "mixed") for node in mine.kept_off if node in nodes
        ):
            mine.given_up = True
            return ANYWHERE
        taken = {node for other in self._others(folder) for node in other.nodes}
        left = (frozenset(nodes) if mine.meant_for is None else mine.meant_for & frozenset(nodes)) - taken
        if not left:
            left = frozenset(_least_used(self._used(folder, nodes)))
        mine.meant_for = left
        return frozenset(nodes) - left

    def _used(self, folder: Path, nodes: Iterable[str]) -> dict[str, float]:
        """Return how often each node has measured the configuration, measures it now, or soon will."""
        before = self._jobs[folder].measured_on
        running: Counter[str] = Counter()
        expected = dict.fromkeys(nodes, 0.0)
        for other in self._others(folder):
            running.update(other.nodes)
            if not other.nodes and other.meant_for:
                for node in other.meant_for & expected.keys():
                    expected[node] += 1 / len(other.meant_for)
        # A running job is often among those that the service has reported.
        return {node: max(running[node], before[node]) + share for node, share in expected.items()}

    def _others(self, folder: Path) -> list[_Replicate]:
        configuration = self._jobs[folder].configuration
        return [
            other
            for place, other in self._jobs.items()
            if other.configuration == configuration and place != folder and (other.nodes or other.meant_for is not None)
        ]

    async def _keep_off(self, folder: Path, mine: _Replicate, job: Job, nodes: Nodes) -> None:
        try:
            await slurm_client.call("scontrol", "update", f"JobId={job.id}", f"ExcNodeList={','.join(sorted(nodes))}")
        except SlurmError as error:
            # The job has just started, or Slurm refuses these nodes.
            logger.debug("the nodes of a job stay unchanged", folder=folder, error=error)
            return
        mine.kept_off = nodes
        _note(folder, nodes)

    # -- known jobs and nodes

    def _replicate(self, folder: Path, spec: JobSpec) -> _Replicate:
        measured_on = Counter(node for nodes in spec.measured_on for node in expand(nodes))
        partitions = _given(self._options, spec, {"partition": "p"})
        # A job with a node of its own has nothing to do with other jobs.
        configuration = str(folder) if spec.same_node else spec.replicates
        return _Replicate(configuration, measured_on, partitions[-1].split(",") if partitions else ())

    def _resumed(self, folder: Path) -> _Replicate | None:
        """Return a job that an earlier agent process has submitted."""
        spec = stored_spec(folder)
        if spec is None or not (spec.replicates or spec.same_node) or _given(self._options, spec, NODE_OPTIONS):
            return None
        mine = self._jobs[folder] = self._replicate(folder, spec)
        try:
            mine.kept_off = frozenset(expand((folder / KEPT_OFF).read_text(encoding="utf-8")))
        except OSError:
            mine.kept_off = ANYWHERE
        return mine

    async def _usable(self, partitions: Sequence[str]) -> Mapping[str, Node]:
        """Return the nodes of partitions (default: the default partition) that accept jobs, by name."""
        async with self._looking:
            if time.monotonic() > self._nodes_until:
                try:
                    self._nodes = await slurm_client.nodes()
                except SlurmError as error:
                    logger.info("the nodes are not known, replicates run anywhere for now", error=error)
                    self._nodes = {}
                self._nodes_until = time.monotonic() + NODES_TIME
        return {
            name: node
            for name, node in self._nodes.items()
            if node.state in TAKES_JOBS and (node.partitions & set(partitions) if partitions else node.is_default)
        }


def _least_used(used: Mapping[str, float]) -> list[str]:
    fewest = min(used.values())
    return [node for node, times in used.items() if times < fewest + 1e-6]


def expand(text: str) -> list[str]:
    """Return the names in Slurm's short form: `a[1-2,05],b` is a1, a2, a05, b. The end of a cut list is lost."""
    found: list[str] = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*(?:\]|$))+", text):
        before, bracket, rest = item.partition("[")
        numbers, end, after = rest.partition("]")
        if not bracket:
            found.append(item)
        elif end:
            for part in numbers.split(","):
                first, _, last = part.partition("-")
                found += [
                    f"{before}{number:0{len(first)}}{after}" for number in range(int(first), int(last or first) + 1)
                ]
    return found


def _given(defaults: Sequence[str], spec: JobSpec, options: Mapping[str, str]) -> list[str]:
    """Return the values of some sbatch options (long name to short form) of a job. The last one counts."""
    items = list(defaults)
    for line in spec.directives:
        if line.startswith("#SBATCH"):
            try:
                items += shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                continue  # sbatch will report the error
    items += spec.scheduler_options
    found = []
    for item, following in zip_longest(items, items[1:], fillvalue=""):
        name, separator, value = item.partition("=")
        # sbatch accepts shortened names; three letters are the fewest that identify these options
        if len(name) > 4 and any(f"--{option}".startswith(name) for option in options):
            found.append(value if separator else following)
        elif re.match(r"-[A-Za-z]", item) and item[1] in options.values():
            found.append(item[2:] or following)
    return found


def _note(folder: Path, nodes: Nodes) -> None:
    if nodes:
        write_atomically(folder / KEPT_OFF, ",".join(sorted(nodes)).encode())
    else:
        (folder / KEPT_OFF).unlink(missing_ok=True)
