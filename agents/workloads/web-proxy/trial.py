"""Run the proxy and its clients once, and print what was measured as one JSON object.

Server and clients run on different processors, if there are two: the server has the first half of them. A wrong byte in
an answer ends the run with status 1, and a fault of the machine with status 3.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

WRONG, MACHINE = 1, 3
EXAMPLE = """\
example:
  python3 trial.py --law geometric --skew 1.5 --background 2 -- BUILD --policy decompress --device ssd
"""
# A process that computes until its parent has ended.
SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


class TrialError(Exception):
    """A program failed; `status` is the exit status that this script passes on."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def processors() -> tuple[set[int], set[int]]:
    """Return the processors of the server and of its clients: halves, or the same one if there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    half = len(allowed) // 2
    return (set(allowed[:half]), set(allowed[half:])) if half else (set(allowed), set(allowed))


def asked(control: Path, text: str) -> dict[str, Any]:
    """Send one command, such as "set policy=hybrid", to a control socket. Raise TrialError if it is refused."""
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("r") as lines:
        connection.connect(str(control))
        connection.sendall(f"{text}\n".encode())
        answer: dict[str, Any] = json.loads(lines.readline())
    if "error" in answer:
        raise TrialError(f"the proxy refused '{text}': {answer['error']}", WRONG)
    return answer


class Proxy:
    """A running proxy and its control socket."""

    def __init__(self, port: int, control: Path, build: Path, environment: Mapping[str, str]) -> None:
        self.port, self._control, self._build, self._environment = port, control, build, environment

    def command(self, text: str) -> dict[str, Any]:
        """Send one command and return the answer. Raise TrialError if it is refused."""
        return asked(self._control, text)

    def set(self, **values: object) -> None:
        """Change settings; `_` in a name stands for `-`."""
        words = [f"{name.replace('_', '-')}={value}" for name, value in values.items()]
        self.command(" ".join(["set", *words]))

    def measure(self, load: Sequence[str]) -> dict[str, float]:
        """Run the clients with these options, and return what they and the proxy have counted. Raise TrialError."""
        command = [str(self._build / "load"), "--pages", str(self._build / "pages"), "--port", str(self.port), *load]
        _, clients = processors()
        with started(command, clients, self._environment) as process:
            assert process.stdout is not None
            if json.loads(process.stdout.readline() or "{}").get("measuring"):
                self.command("reset")
            measured = json.loads(process.stdout.readline() or "{}")
            counted = self.command("stats") if measured else {}
            if status := process.wait():
                raise TrialError(f"load ended with status {status}", status if status > 0 else MACHINE)
        requests = max(counted["page_requests"], 1)
        return {
            **measured,
            **counted,
            "hit_ratio": (counted["raw_hits"] + counted["gzip_hits"]) / requests,
            "cpu_us_per_request": 1e6 * counted["cpu_seconds"] / requests,
        }


@contextmanager
def started(command: Sequence[str], cores: set[int], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program on these processors until the `with` statement ends."""
    process = subprocess.Popen(
        list(command),
        env=dict(environment),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        process.wait()


@contextmanager
def running(build: Path, options: Sequence[str], environment: Mapping[str, str] = os.environ) -> Iterator[Proxy]:
    """Run the proxy of a build with these options. Raise TrialError if it does not start."""
    server, _ = processors()
    # the path of a socket must be short, which a trial's folder need not be
    with tempfile.TemporaryDirectory(prefix="proxy-") as folder:
        control = Path(folder) / "control"
        command = [str(build / "proxy"), "--pages", str(build / "pages"), "--control", str(control), *options]
        with started(command, server, environment) as process:
            assert process.stdout is not None
            if not (line := process.stdout.readline()):
                raise TrialError("the proxy did not start", process.wait())
            yield Proxy(json.loads(line)["port"], control, build, environment)


@contextmanager
def background(count: int) -> Iterator[None]:
    """Run this number of computing processes on each processor of the server."""
    server, _ = processors()
    with ExitStack() as stack:
        for core in server:
            for _ in range(count):
                stack.enter_context(started([sys.executable, "-c", SPIN], {core}, os.environ))
        yield


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="folder with proxy, load and pages")
    for name in ("clients", "law", "skew", "gzip-share", "seconds", "warm-up", "seed"):
        parser.add_argument(f"--{name}", help="passed to load; see load --help")
    parser.add_argument(
        "--background", type=int, default=0, help="computing processes on each processor of the server (default: 0)"
    )
    parser.add_argument("proxy", nargs="*", help="options of the proxy; an argument -- goes before BUILD then")
    options = parser.parse_args()
    if not 0 <= options.background <= 64:
        parser.error(f"--background: {options.background} is not allowed. Use a number from 0 to 64.")
    passed = ("clients", "law", "skew", "gzip_share", "seconds", "warm_up", "seed")
    load = [f"--{name.replace('_', '-')}={value}" for name in passed if (value := getattr(options, name)) is not None]
    try:
        with running(options.build, options.proxy) as proxy, background(options.background):
            print(json.dumps(proxy.measure(load)))
    except TrialError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
