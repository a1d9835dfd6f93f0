"""A real agent with a component that costs next to nothing to run."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from service.embedded.processes import Child, stop
from tests.factories.patience import wait_for

COMPONENT = "bowl"
APPLICATION = "only"
# Writes down each run, so that a test knows what was run and how often.
PROGRAM = """
import os, pathlib, sys, time
x, n, delay = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
before = pathlib.Path(os.environ["RUNS"])
quick = not before.exists() or len(before.read_text().splitlines()) < QUICK_RUNS
time.sleep(delay if quick else 10 * delay)
with open("point.json", "w") as left:
    left.write(f'{{"x": {x!r}, "n": {n}}}')
with open(os.environ["RUNS"], "a") as runs:
    runs.write(f"{x!r} {n}\\n")
print(f"value={(x - 3.0) ** 2 + n!r}")
"""
DESCRIPTION = """
name: bowl
description: A bowl with its lowest point at x = 3, n = 0.
parameters:
  x: {type: float, min: -10.0, max: 10.0, default: 0.0}
  n: {type: int, min: 0, max: 8, default: 4}
env: {RUNS: "RUNS_FILE"}
artifacts: ["*.json"]
applications:
  only:
    command: ["PYTHON", "{component}/bowl.py", "{x}", "{n}", "DELAY"]
metrics:
  value: {type: regex, pattern: 'value=(\\S+)', from: stdout}
"""


def value(params: dict[str, float | int | str | bool]) -> float:
    """Return the value that a trial of the component measures."""
    return (float(params["x"]) - 3.0) ** 2 + int(params["n"])


def write_component(folder: Path, runs: Path, delay: float = 0.05, quick_runs: int = 100_000) -> Path:
    """Write the component `bowl` below `folder`, the folder of the agent's components.

    A run takes `delay` seconds, and ten times as long after the first `quick_runs`.
    """
    home = folder / COMPONENT
    home.mkdir(parents=True)
    (home / "bowl.py").write_text(PROGRAM.replace("QUICK_RUNS", str(quick_runs)))
    text = DESCRIPTION.replace("PYTHON", sys.executable).replace("RUNS_FILE", str(runs)).replace("DELAY", str(delay))
    (home / "component.yaml").write_text(text)
    return folder


class RealAgent:
    """A process `trimtab-agent run` with its state in `folder`. `proof`: a file of a token, or an enrolment.

    `programs`: the folder with the program, by default of this version. `entering`: the beginning of the command line,
    if the agent runs on another machine (factories/network.py).
    """

    def __init__(
        self,
        folder: Path,
        server: str,
        proof: Path | str,
        components: Path,
        slots: int = 1,
        name: str = "test-agent",
        options: Sequence[str] = (),
        programs: Path = Path(sys.executable).parent,
        entering: Sequence[str] = (),
    ) -> None:
        self._log = folder / "agent.log"
        argv = [*entering, str(programs / "trimtab-agent"), "run", "--server", server]
        argv += ["--token-file" if isinstance(proof, Path) else "--enrol", str(proof), "--components", str(components)]
        argv += ["--state-dir", str(folder / "state"), "--slots", str(slots), "--name", name, *options]
        self._child = Child("agent", argv, dict(os.environ), self._log)

    def start(self) -> "RealAgent":
        """Start the agent and wait until it has registered."""
        begin = self._log.stat().st_size if self._log.exists() else 0
        self._child.start()
        wait_for(
            lambda: (
                re.search(r"^ready agent=", self._log.read_text()[begin:], re.MULTILINE) is not None
                or not self._child.running()
            ),
            "the agent registers",
        )
        assert self._child.running(), self._log.read_text()
        return self

    @property
    def pid(self) -> int:
        """The number of the process that was started last."""
        assert self._child.process is not None
        return self._child.process.pid

    def running(self) -> bool:
        """Return whether the process runs."""
        return self._child.running()

    def kill(self) -> None:
        """Kill the agent. The processes that it has started continue."""
        assert self._child.process is not None
        self._child.process.kill()
        self._child.process.wait()

    def log(self) -> str:
        """Return all output of the agent."""
        return self._log.read_text()

    def __enter__(self) -> "RealAgent":
        return self.start()

    def __exit__(self, *_: object) -> None:
        stop([self._child])
