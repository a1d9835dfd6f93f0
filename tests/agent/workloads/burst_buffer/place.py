"""A directory with a burst buffer, in which tests run applications."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.agent.workloads.shared import WORKLOADS, run

WORKLOAD = WORKLOADS / "burst-buffer"
SOURCES = WORKLOAD / "src"
DAEMON = [
    *(
        SOURCES / name
        for name in ("main.c", "options.c", "serve.c", "gate.c", "node.c", "backend.c", "recover.c", "common.c")
    ),
    *sorted((SOURCES / "store").glob("*.c")),
]
LIBRARY = [*sorted((SOURCES / "preload").glob("*.c")), SOURCES / "node.c"]
HELPERS = Path(__file__).parent
SMALL = ["--ram-cache-size", "16", "--flash-cache-size", "16"]
"""Levels that are smaller than the data that most tests write."""


class Place:
    """A directory to be buffered, a buffer, and the programs."""

    def __init__(self, built: Path, folder: Path) -> None:
        self.built, self.folder = built, folder
        self.target, self.buffer, self.report = folder / "target", folder / "buffer", folder / "report"
        self.target.mkdir()

    def line(self, *arguments: object, options: Sequence[object] = (), program: str = "burst") -> list[str]:
        """Return the command line that runs a command on the directory."""
        own = [self.built / program, "run", "--buffer", self.buffer, "--report", self.report, *options]
        return list(map(str, [*own, self.target, *arguments]))

    def run(self, *arguments: object, options: Sequence[object] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command on the directory."""
        return run(self.line(*arguments, options=options))

    def python(self, script: str, *arguments: object, options: Sequence[object] = ()) -> str:
        """Run a script with the directory as its first argument; return its output."""
        done = self.run(sys.executable, "-ISc", script, self.target, *arguments, options=options)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(path.name for path in self.buffer.iterdir()) == ["lock"]
        return done.stdout

    def start(self, script: str, *arguments: object, options: Sequence[object] = ()) -> "subprocess.Popen[str]":
        """Start such a script."""
        command = self.line(sys.executable, "-ISc", script, self.target, *arguments, options=options)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def start_for_a_job(self, *options: object) -> dict[str, str]:
        """Start a buffer in the background; return the variables of applications."""
        command = [self.built / "burst", "start", *options, "--buffer", self.buffer, self.target]
        with (self.folder / "errors").open("w") as errors:  # which the guardian keeps open
            done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True, check=True)
        return dict(item.split("=") for item in done.stdout.replace("'", "").split()[1:])

    @property
    def guardian(self) -> int:
        """The process that owns the buffer."""
        return int((self.buffer / "lock").read_text().split()[-1])

    def counted(self) -> dict[str, float]:
        """Return the report of the last run."""
        found: dict[str, float] = json.loads(self.report.read_text())
        return found


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def daemon_of(guardian: int) -> int:
    """Return the daemon: the child that has the name of its parent."""
    name = Path(f"/proc/{guardian}/comm").read_text()
    [found] = [child for child in children(guardian) if Path(f"/proc/{child}/comm").read_text() == name]
    return found


def ready(process: "subprocess.Popen[str]") -> bool:
    """Return whether the next line of a process is `ready`."""
    assert process.stdout
    return process.stdout.readline() == "ready\n"
