"""The demonstration's child processes: the embedded service and one agent."""

import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.embedded.processes import start

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT / "agents" / "workloads"
START_SECONDS = 90.0
STOP_SECONDS = 12.0


class PartError(Exception):
    """A part did not start or has ended. The message names it and shows the end of its log."""


@dataclass(frozen=True)
class Addresses:
    """The addresses of the service. `login_link` works once."""

    console: str
    grpc: str
    login_link: str


class Part:
    """A child process with its log in a file. SIGTERM stops it, and so does any end of this process."""

    def __init__(self, name: str, argv: list[str], log: Path) -> None:
        self.name = name
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        self._process = start(argv, log=log, death_signal=signal.SIGTERM)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first match of `pattern` in the log. Raises PartError if the process ends or takes too long."""
        end = time.monotonic() + START_SECONDS
        while not (match := re.search(pattern, self._text(), re.MULTILINE)):
            self.check()
            if time.monotonic() > end:
                raise PartError(f"the {self.name} was not ready after {START_SECONDS:.0f} s:\n{self._tail()}")
            time.sleep(0.05)
        return match

    def check(self) -> None:
        """Raise PartError if the process has ended."""
        if self._process.poll() is not None:
            raise PartError(f"the {self.name} ended with status {self._process.returncode}:\n{self._tail()}")

    def stop(self) -> None:
        """End the process and wait for it; a process that does not react is killed."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _tail(self) -> str:
        return "\n".join(self._text().splitlines()[-15:]) + f"\n(whole log: {self._log})"


class Parts:
    """The service and agent with their data in one folder, for the duration of a `with`."""

    def __init__(self, data: Path, port: int, grpc_port: int) -> None:
        self._data = data
        self._ports = (port, grpc_port)
        self._running: list[Part] = []

    @property
    def token(self) -> str:
        """The administrator's token, written by the service."""
        return self._token_file.read_text().strip()

    @property
    def agent_state(self) -> Path:
        """The agent's state directory."""
        return self._data / "agent"

    @property
    def _token_file(self) -> Path:
        return self._data / "admin-token"

    def start_service(self) -> Addresses:
        """Start the service and wait until it answers."""
        port, grpc_port = self._ports
        argv = [program("trimtab-service"), "up", "--data-dir", str(self._data)]
        service = self._add(
            Part("service", [*argv, "--port", str(port), "--grpc-port", str(grpc_port)], self._log("service"))
        )
        ready = service.wait_for(r"^ready console=(\S+) grpc=(\S+)$")
        link = service.wait_for(r"(http\S+/login\?code=\S+)")
        return Addresses(ready[1], ready[2], link[1])

    def start_agent(self, server: str) -> None:
        """Start the agent with the workload of the demonstration and wait until it has registered."""
        argv = [program("trimtab-agent"), "run", "--server", server, "--token-file", str(self._token_file)]
        argv += ["--components", str(WORKLOADS / "gcc-flags"), "--state-dir", str(self.agent_state), "--slots", "1"]
        self._add(Part("agent", argv, self._log("agent"))).wait_for(r"^ready agent=")

    def check(self) -> None:
        """Raise PartError if a part has ended."""
        for part in self._running:
            part.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The agent stops first, to give its trials back to the service. A second Ctrl-C is ignored.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for part in reversed(self._running):
            part.stop()

    def _add(self, part: Part) -> Part:
        self._running.append(part)
        return part

    def _log(self, name: str) -> Path:
        return self._data / "logs" / f"demo-{name}.log"


def program(name: str) -> str:
    """Return the path of a command in the folder of this Python."""
    return str(Path(sys.executable).parent / name)
