"""Create control groups for the agent's trials, if the machine allows it.

A group belongs to a supervisor, which enters it once: entering takes the kernel 10 ms, and no trial should wait for it.
Version 2 is used if it supports what is needed, else version 1's memory controller.
"""

import errno
import os
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

from trimtab_agent.logger import Logger
from trimtab_agent.supervisor import cgroup
from trimtab_agent.supervisor.supervise import start_ticks

logger = Logger(__name__)

PREFIX = "trimtab-"
# The group for the agent itself, if it must leave its own. It is a good DelegateSubgroup= for systemd too.
INNER = "trimtab-agent"


class Cgroups:
    """Creates groups that all have the same memory limit.

    If the kernel or its administrator allows none, this is logged once, and `make` returns "".
    """

    def __init__(self, memory: int = 0) -> None:
        """`memory` is the limit of a supervisor with its trial in bytes; 0 means no limit."""
        self.memory = memory
        self._base: Path | None = None
        self._find()

    def make(self) -> str:
        """Return the path of a new group; "" if there can be none."""
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
        self._do_without("; ".join(reasons) or "no control groups are mounted")

    def _do_without(self, reason: str) -> None:
        self._base = None
        # Without a limit, groups only help to end the trial of a killed supervisor.
        if self.memory:
            logger.warning("no control groups for trials, there is no memory limit", reason=reason)
        else:
            logger.info("no control groups for trials, they are found by their environment", reason=reason)


def _candidates(limited: bool) -> list[tuple[Path, "_Prepare"]]:
    """Return where groups may be possible: this process's own group in each hierarchy."""
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
    """Enables the memory controller for groups below `base`, if there is a base."""

    def __init__(self, base: Path | None) -> None:
        self._base = base

    def __call__(self) -> None:
        base = self._base
        if base is None or "memory" in _words(base / "cgroup.subtree_control"):
            return
        if (base / "cgroup.type").exists():
            # A group below the root that delegates controllers must not contain processes.
            inner = base / INNER
            inner.mkdir(exist_ok=True)
            for pid in cgroup.processes(str(base)):
                with suppress(ProcessLookupError):
                    (inner / "cgroup.procs").write_text(str(pid), encoding="ascii")
        (base / "cgroup.subtree_control").write_text("+memory", encoding="ascii")


def _probe(base: Path) -> None:
    """Create a group and let a process enter it. Raises OSError if that is not allowed."""
    probe = base / f"{PREFIX}{os.getpid()}-probe"
    probe.mkdir()
    try:
        script = 'echo 0 > "$0/cgroup.procs"'
        # The agent's own PATH is used on purpose.
        done = subprocess.run(["sh", "-c", script, str(probe)], capture_output=True, text=True, check=False)  # nosec B607
        if done.returncode != 0:
            raise OSError(errno.EPERM, done.stderr.strip().rpartition(": ")[2] or "cannot be entered")
    finally:
        probe.rmdir()


def _mounts() -> list[tuple[Path, str, set[str]]]:
    """Return the mounted hierarchies: mount point, root in the hierarchy, controllers ("cgroup2": version 2)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, mount = fields.split(" ")[3:5]
            found.append((Path(mount), root, {kind} if kind == "cgroup2" else set(options.split(","))))
    return found


def _below(mount: Path, root: str, path: str) -> Path:
    """Return the folder of a group. In a container the mount may show only a part of the hierarchy."""
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
        # Swapping would distort the timing.
        with suppress(FileNotFoundError):
            (group / "memory.swap.max").write_text("0", encoding="ascii")
        return
    (group / "memory.limit_in_bytes").write_text(str(memory), encoding="ascii")
    with suppress(FileNotFoundError):  # the kernel does not account for swap
        (group / "memory.memsw.limit_in_bytes").write_text(str(memory), encoding="ascii")


def _clear(base: Path) -> None:
    """Remove empty groups of agents that no longer exist. Groups with running supervisors stay."""
    for group in base.glob(f"{PREFIX}[0-9]*-*-*"):
        pid, ticks = group.name.removeprefix(PREFIX).split("-")[:2]
        try:
            alive = start_ticks(int(pid)) == int(ticks)
        except (OSError, ValueError):
            alive = False
        if not alive:
            cgroup.remove(str(group))
