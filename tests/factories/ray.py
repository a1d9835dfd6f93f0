"""A real Ray for tests: a head with its dashboard on this machine, on ports of its own."""

import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from service.embedded.processes import Child
from tests.factories.service import free_port, wait_for

CPUS = 8
START_SECONDS = 120.0
# in the environment of all that a Ray starts, jobs included: the folder that it is in
MARK = "TRIMTAB_TEST_RAY"


class RayHead:
    """`ray start --head` on this machine. After `start`: `address` for drivers, `dashboard` for jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # those that stay the same when it is started again, as on a cluster
        self._ports = {name: free_port() for name in ("port", "dashboard-port", "ray-client-server-port")}
        self.address = f"127.0.0.1:{self._ports['port']}"
        self.dashboard = f"http://127.0.0.1:{self._ports['dashboard-port']}"
        self._child: Child | None = None

    def start(self) -> None:
        """Returns when the dashboard answers."""
        ports = {**self._ports, "dashboard-agent-listen-port": free_port(), "min-worker-port": 0, "max-worker-port": 0}
        argv = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats"]
        argv += ["--include-dashboard=true", "--include-log-monitor=false", f"--temp-dir={self.folder}"]
        # the least that it takes
        argv += [f"--num-cpus={CPUS}", f"--object-store-memory={80_000_000}"]
        argv += [f"--{name}={port}" for name, port in ports.items()]
        # a memory monitor would see the whole machine's memory, and kill jobs that other tests' processes leave no room
        environment = {**os.environ, MARK: str(self.folder), "RAY_memory_monitor_refresh_ms": "0"}
        self._child = Child("ray", argv, environment, self.folder / "head.log")
        self._child.start()
        try:
            wait_for(self._answers, START_SECONDS, "Ray's dashboard answers")
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"{error}\n{(self.folder / 'head.log').read_text()[-3000:]}") from None

    def stop(self) -> None:
        """Ends every process of it, jobs included."""
        processes = self.processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self._child is not None and self._child.process is not None:
            self._child.process.wait()
        _, alive = psutil.wait_procs(processes, timeout=15)
        assert not alive, f"outlived Ray: {alive}"

    def lose(self) -> None:
        """Kills what Ray itself consists of, as the end of the head's machine would. Jobs are left to find it out."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if process.name() in ("ray", "gcs_server", "raylet") or "dashboard" in " ".join(process.cmdline()):
                    process.kill()

    def processes(self) -> list[psutil.Process]:
        """All that this Ray has started and that is still there."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.folder):
                    found.append(process)
        return found

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.dashboard}/api/jobs/", timeout=10) as answer:
            return bool(answer.status == 200)
        return False


@contextmanager
def ray_head() -> Iterator[RayHead]:
    """A running head."""
    # sockets have short paths
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    head = RayHead(folder)
    try:
        head.start()
        yield head
    finally:
        head.stop()
        shutil.rmtree(folder, ignore_errors=True)
