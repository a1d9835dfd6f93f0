"""Where this agent may make control groups for its trials.

A group belongs to a supervisor, which enters it once: moving into a group takes the kernel 10 ms, which no trial waits
for. Version 2 is used where it can do what is asked for, else version 1's memory controller.
"""

import errno
import logging
import os
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

from trimtab_agent.supervisor import cgroup
from trimtab_agent.supervisor.supervise import start_ticks

logger = logging.getLogger(__name__)

PREFIX = "trimtab-"
# where the agent itself goes, if it has to make room; also a good DelegateSubgroup= for systemd
INNER = "trimtab-agent"


class Cgroups:
    """Makes groups, each with the same limit of memory.

    Where the kernel or its administrator allows none, that is said once, and `make` gives "".
    """

    def __init__(self, memory: int = 0) -> None:
        """`memory`: bytes that a supervisor with its trial may take; 0: no limit."""
        self.memory = memory
        self._base: Path | None = None
        self._find()

    def make(self) -> str:
        """The path of a new group; "" where there can be none."""
        if self._base is None:
            return ""
        group = self._base / f"{PREFIX}{os.getpid()}-{start_ticks(os.getpid())}-{uuid.uuid4().hex[:12]}"
        try:
            group.mkdir()
            if self.memory:
                _limit(group, self.memory)
        except OSError as error:
            cgroup.remove(str(group))
            self._do_without(f"{group}: {error.strerror}")
            return ""
        return str(group)

    def _find(self) -> None:
        reasons = []
        for base, prepare in _candidates(bool(self.memory)):
            try:
                prepare()
                _probe(base)
            except OSError as error:
                reasons.append(f"{base}: {error.strerror}")
                continue
            self._base = base
            _clear(base)
            return
        self._do_without("; ".join(reasons) or "none is mounted")

    def _do_without(self, reason: str) -> None:
        self._base = None
        # without a limit they only make the end of a killed supervisor's trial surer
        level = logging.WARNING if self.memory else logging.INFO
        lost = "no limit of memory holds, and " if self.memory else ""
        logger.log(level, "no control groups for trials (%s): %strials are found by their environment", reason, lost)


def _candidates(limited: bool) -> list[tuple[Path, "_Prepare"]]:
    """Where groups may be possible: this process's own place in each hierarchy."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        for controller in names.split(","):
            own[controller] = path
    found: list[tuple[Path, _Prepare]] = []
    for mount, root, controllers in _mounts():
        if "cgroup2" in controllers and "" in own:
            base = _below(mount, root, own[""])
            if base.name == INNER:
                base = base.parent
            if not limited or "memory" in _words(base / "cgroup.controllers"):
                found.insert(0, (base, _Prepare(base if limited else None)))
        elif "memory" in controllers and "memory" in own:
            found.append((_below(mount, root, own["memory"]), _Prepare(None)))
    return found


class _Prepare:
    """Lets groups below `base` have the memory controller, where there is a base."""

    def __init__(self, base: Path | None) -> None:
        self._base = base

    def __call__(self) -> None:
        base = self._base
        if base is None or "memory" in _words(base / "cgroup.subtree_control"):
            return
        if (base / "cgroup.type").exists():
            # not the root: a group that gives controllers to others may hold no process itself
            inner = base / INNER
            inner.mkdir(exist_ok=True)
            for pid in cgroup.processes(str(base)):
                with suppress(ProcessLookupError):
                    (inner / "cgroup.procs").write_text(str(pid), encoding="ascii")
        (base / "cgroup.subtree_control").write_text("+memory", encoding="ascii")


def _probe(base: Path) -> None:
    """Makes a group and has a process enter it. Raises OSError where that is not allowed."""
    probe = base / f"{PREFIX}{os.getpid()}-probe"
    probe.mkdir()
    try:
        script = 'echo 0 > "$0/cgroup.procs"'
        # the agent's own PATH is as good as any
        done = subprocess.run(["sh", "-c", script, str(probe)], capture_output=True, text=True, check=False)  # nosec B607
        if done.returncode != 0:
            raise OSError(errno.EPERM, done.stderr.strip().rpartition(": ")[2] or "cannot be entered")
    finally:
        probe.rmdir()


def _mounts() -> list[tuple[Path, str, set[str]]]:
    """Mounted hierarchies: where, what part of the hierarchy, and their controllers ("cgroup2" for version 2)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, mount = fields.split(" ")[3:5]
            found.append((Path(mount), root, {kind} if kind == "cgroup2" else set(options.split(","))))
    return found


def _below(mount: Path, root: str, path: str) -> Path:
    """The folder of a group; in a container the mount may show a part of the hierarchy alone."""
    with suppress(ValueError):
        path = str(Path(path).relative_to(root))
    return mount / path.lstrip("/")


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _limit(group: Path, memory: int) -> None:
    if (group / "memory.max").exists():
        (group / "memory.max").write_text(str(memory), encoding="ascii")
        # what is swapped out is slow, and would be timed
        with suppress(FileNotFoundError):
            (group / "memory.swap.max").write_text("0", encoding="ascii")
        return
    (group / "memory.limit_in_bytes").write_text(str(memory), encoding="ascii")
    with suppress(FileNotFoundError):  # a kernel that does not account swap
        (group / "memory.memsw.limit_in_bytes").write_text(str(memory), encoding="ascii")


def _clear(base: Path) -> None:
    """Removes the empty groups of agents that are no more; supervisors that go on without their agent keep theirs."""
    for group in base.glob(f"{PREFIX}[0-9]*-*-*"):
        pid, ticks = group.name.removeprefix(PREFIX).split("-")[:2]
        try:
            alive = start_ticks(int(pid)) == int(ticks)
        except (OSError, ValueError):
            alive = False
        if not alive:
            cgroup.remove(str(group))
