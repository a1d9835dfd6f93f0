"""The cost of application matching for people who submit jobs: sbatch with and without the plug-in, the share of the
agent in it, sbatch while the agent is stopped, and the start of a command by `trimtab-agent wrap`. A real Slurm of four
virtual nodes, an agent, and a service of the tests that answers every question at once.

With and without the plug-in alternate, so that the load of the machine is the same for both; TRIMTAB_MATCH=off is also
measured. Every job resembles a record, which is the costlier case: its settings are applied and its id is reported.

Run as `python -m tests.benchmarks.matching_cost [--quick]`.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.slurm import Slurm, slurm_cluster
from trimtab_agent.matching import client, protocol

SOURCES = Path(__file__).parents[2] / "deploy" / "slurm"
TARGET_P50 = 60.0
TARGET_P99 = 150.0
HARD_LIMIT = 500.0
COMPONENT = """
name: solver
parameters:
  threads: {type: int, min: 1, max: 64, default: 1, env: SOLVER_THREADS}
applications:
  main: {command: ["true"]}
metrics:
  seconds: wall_time
"""


@contextmanager
def place(folder: Path) -> Iterator[tuple[Slurm, AgentProcess, Path]]:
    """A cluster with the plug-in and an agent behind it."""
    (folder / "slurm").mkdir()
    (folder / "components").mkdir()
    (folder / "components" / "solver.yaml").write_text(COMPONENT)
    (folder / "policy.yaml").write_text("matching: {mode: apply, control_share: 0}")
    path = folder / "match.sock"
    subprocess.run([SOURCES / "install.sh", folder / "plugin", f"SOCKET={path}"], check=True, stdout=subprocess.DEVNULL)
    far = FarSide().open()
    far.resemble("solver", threads=8)
    agent = AgentProcess(folder, far.port)
    try:
        with slurm_cluster(folder / "slurm", "CliFilterPlugins=lua\n") as slurm:
            os.environ["SLURM_CONF"] = str(slurm.configuration)
            shutil.copy(folder / "plugin" / "cli_filter.lua", slurm.folder)
            # The same cluster for clients without the plug-in.
            without = slurm.folder / "without"
            without.mkdir()
            for file in ("slurm.conf", "cgroup.conf"):
                (without / file).write_text((slurm.folder / file).read_text().replace("CliFilterPlugins=lua\n", ""))
            agent.start("--match-socket", str(path), "--policy", str(folder / "policy.yaml"))
            agent.wait_until_ready()
            yield slurm, agent, path
    finally:
        agent.clear_away()
        far.close()


def milliseconds(action: Callable[[], object]) -> float:
    """Return how long the action takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def submit(configuration: Path, **environment: str) -> None:
    """Submit a held job: the nodes stay idle while submissions are measured."""
    argv = ["sbatch", "--hold", "--output=/dev/null", "--wrap=true"]
    env = {**os.environ, "SLURM_CONF": str(configuration), **environment}
    subprocess.run(argv, env=env, check=True, capture_output=True)


def submissions(slurm: Slurm, number: int) -> dict[str, list[float]]:
    """Return the milliseconds of submissions of each kind, taken in turn."""
    kinds: Mapping[str, tuple[Path, dict[str, str]]] = {
        "without": (slurm.folder / "without" / "slurm.conf", {}),
        "with": (slurm.configuration, {}),
        "off": (slurm.configuration, {"TRIMTAB_MATCH": "off"}),
    }
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(number):
        for kind, (configuration, environment) in kinds.items():
            found[kind].append(milliseconds(lambda c=configuration, e=environment: submit(c, **e)))  # type: ignore[misc]
    slurm.settle()
    return found


def asks(path: Path, number: int) -> list[float]:
    """Return the milliseconds of questions to the agent."""
    pairs = [("kind", "sbatch"), ("name", "ant"), ("program", "ant.sh"), ("arg", "sbatch"), ("arg", "/home/ann/ant.sh")]
    pairs += [("present", f"VARIABLE_{count}") for count in range(60)]
    return [milliseconds(lambda: client.talk(str(path), protocol.ASK, pairs, 10)) for _ in range(number)]


def wraps(path: Path, number: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of `true` by itself and wrapped, in turn."""
    program = Path(sys.executable).with_name("trimtab-agent")
    wrapped = [str(program), "wrap", "--socket", str(path), "--", "true"]
    alone, ours = [], []
    for _ in range(number):
        alone.append(milliseconds(lambda: subprocess.run(["true"], check=True)))
        ours.append(milliseconds(lambda: subprocess.run(wrapped, check=True)))
    return alone, ours


def percentile(values: Sequence[float], share: int) -> float:
    """Return a percentile."""
    return statistics.quantiles(values, n=100)[share - 1]


def run(quick: bool) -> Result:
    """See the module's text."""
    number = 30 if quick else 200
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name, place(Path(name)) as (slurm, agent, path):
        submissions(slurm, 3)  # warms caches
        found = submissions(slurm, number)
        asked = asks(path, number)
        alone, wrapped = wraps(path, number)
        assert agent.process
        agent.process.send_signal(signal.SIGSTOP)
        stopped = [milliseconds(lambda: submit(slurm.configuration)) for _ in range(5)]
        agent.process.send_signal(signal.SIGCONT)
    p50, p99 = (percentile(found["with"], share) - percentile(found["without"], share) for share in (50, 99))
    longest = max(stopped) - percentile(found["without"], 50)
    rows = [
        Row("sbatch without the plug-in, p50", percentile(found["without"], 50), "ms"),
        Row("… p99", percentile(found["without"], 99), "ms"),
        Row("the plug-in adds, p50", p50, "ms", f"at most {TARGET_P50:g} ms", p50 <= TARGET_P50),
        Row("… p99", p99, "ms", f"at most {TARGET_P99:g} ms", p99 <= TARGET_P99),
        Row("… with TRIMTAB_MATCH=off, p50", percentile(found["off"], 50) - percentile(found["without"], 50), "ms"),
        Row("a question to the agent, p50", percentile(asked, 50), "ms"),
        Row("… p99", percentile(asked, 99), "ms"),
        Row("a stopped agent adds, longest of 5", longest, "ms", f"about {HARD_LIMIT:g} ms"),
        Row("wrap adds to a command, p50", percentile(wrapped, 50) - percentile(alone, 50), "ms"),
        Row("… p99", percentile(wrapped, 99) - percentile(alone, 99), "ms"),
    ]
    return result(rows, submissions=found, asks=asked, alone=alone, wrapped=wrapped, stopped=stopped)


if __name__ == "__main__":
    main("Cost of application matching", run)
