"""Agents as real processes, against a far side of our own over real gRPC."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.far_side import TOKEN, FarSide
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_components.schema import Component

# every way that a trial can go, for the daemon's tests
BASIC = """
name: basic
parameters:
  x: {type: float, min: 0, max: 10, default: 1, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'echo "value=$0"']}
  slow: {command: [sh, -c, 'echo started > "$1"; sleep 1.5; echo "value=$0"', "{x}", "MARK"]}
  long: {command: [sh, -c, 'setsid sleep 1000 & sleep 1000']}
  bad: {command: [sh, -c, 'echo first; echo broken >&2; exit 3']}
  leaving:
    command: [sh, -c, 'echo "got $0" > result.txt; head -c 2000 /dev/zero > big.bin; sleep "$1"; echo value=1', "{x}"]
    env: {LEVEL: "{x}", MY_TOKEN: abcdefgh}
  telling: {command: [sh, -c, 'for i in 1 2 3; do echo "loss=$i"; done; sleep "$0"; echo loss=4; echo value=1']}
  gated:
    command:
      [sh, -c, 'echo started > "$1"; until [ -e "$2" ]; do sleep 0.05; done; echo "value=$0"', "{x}", "MARK", "GATE"]
artifacts: ["*.txt", big.bin]
stream:
  - {pattern: 'loss=(?P<loss>.*)'}
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
  seconds: wall_time
"""


@pytest.fixture
def write_component(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a component file, with other files next to it, and returns its path."""

    def write(text: str, **files: str) -> Path:
        folder = tmp_path / "components" / "one"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_text(content)
        (folder / "component.yaml").write_text(text)
        return folder / "component.yaml"

    return write


@pytest.fixture
def component(write_component: Callable[..., Path], tmp_path: Path) -> Callable[..., Component]:
    """Return the loaded component of the test."""

    def make(text: str, **files: str) -> Component:
        return load(write_component(text, **files), Generator(tmp_path / "generated"))

    return make


@pytest.fixture
def far_side() -> Iterator[FarSide]:
    """The service that the agent talks to."""
    far = FarSide().open()
    yield far
    far.close()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that replaces a program such as sbatch by a script, which finds the program in $REAL."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def put(program: str, script: str) -> None:
        real = shutil.which(program)
        (folder / program).write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
        (folder / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return put


class AgentProcess:
    """A process `trimtab-agent run` that tests kill and start again. Its state stays."""

    def __init__(self, folder: Path, port: int, token: str = TOKEN) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.components = folder / "components"
        self.port = port
        (folder / "token").write_text(token + "\n")
        self.process: subprocess.Popen[bytes] | None = None
        self._log = folder / "agent.log"
        self._begun = 0

    def start(self, *options: str, token_file: bool = True) -> "AgentProcess":
        """Start the agent without waiting for its registration."""
        command = [sys.executable, "-m", "trimtab_agent.main", "run", "--server", f"127.0.0.1:{self.port}"]
        command += ["--token-file", str(self.folder / "token")] if token_file else []
        command += ["--components", str(self.components)]
        command += ["--state-dir", str(self.state), "--name", "tested", *options]
        with self._log.open("ab") as log:
            self._begun = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        return self

    @property
    def log(self) -> str:
        """Return all output of the agent."""
        return self._log.read_text()

    def wait_until_ready(self) -> None:
        """Wait until the agent has registered after its latest start."""
        wait_for(lambda: "ready " in self.log[self._begun :])

    def runs(self) -> bool:
        """Return whether the process was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill the agent, and not the processes that it has started."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the agent with SIGTERM. It must end well."""
        assert self.process
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log

    def clear_away(self) -> None:
        """End all processes of the agent at the end of a test, also after a failure."""
        if self.process and self.runs():
            self.process.kill()
            self.process.wait()
        for pid in processes_of(self.state):
            # One that ends by itself may just have done so.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes_of(state: Path) -> list[int]:
    """Return the processes of trials under a state directory: trials by their mark, supervisors by their open files."""
    found = []
    mark = f"TRIMTAB_JOB={state}".encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            marked = any(item.startswith(mark) for item in (process / "environ").read_bytes().split(b"\0"))
            opened = any(str(state) in str(handle.readlink()) for handle in (process / "fd").iterdir())
            if marked or opened:
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.fixture
def agent(tmp_path: Path, far_side: FarSide) -> Iterator[AgentProcess]:
    """An agent that has not been started yet, with the basic component."""
    made = AgentProcess(tmp_path, far_side.port)
    (tmp_path / "components").mkdir(exist_ok=True)
    basic = BASIC.replace("MARK", str(tmp_path / "started")).replace("GATE", str(tmp_path / "gate"))
    (tmp_path / "components" / "basic.yaml").write_text(basic)
    yield made
    made.clear_away()


def run_agent_command(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run `trimtab-agent` with these arguments to its end."""
    command = [sys.executable, "-m", "trimtab_agent.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
