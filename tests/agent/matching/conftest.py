"""An agent that matches jobs, with a component of environment variables and a preloaded library."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from trimtab_agent._gen import matching_pb2
from trimtab_agent.matching import client, protocol

COMPONENT = """
name: solver
parameters:
  threads: {type: int, min: 1, max: 64, default: 1, env: SOLVER_THREADS}
  mode: {type: categorical, values: [fast, 'a "b" $HOME; c, d=e\\f'], default: fast, env: SOLVER_MODE}
  unroll: {type: boolean, default: false, flag: {on: --unroll}}
  contiguous: {type: boolean, default: false, scheduler: {on: --contiguous}}
env: {SOLVER_CACHE: "on", SOLVER_WORK: "{work}"}
preload: ["{build}/libsolver.so"]
build: {commands: [["true"]]}
applications:
  main: {command: ["true"]}
metrics:
  seconds: wall_time
"""
POLICY = """
matching:
  mode: apply
  control_share: 0
  timeout: 10
  components:
    solver: {preload: [LIBRARY], omit: [SOLVER_WORK]}
"""


class Matching:
    """The agent, what the service answers to it, and its socket."""

    def __init__(self, folder: Path, far_side: FarSide, agent: AgentProcess, library: Path) -> None:
        self.folder, self.far_side, self.agent, self.library = folder, far_side, agent, library
        self.socket = folder / "match.sock"
        self._policy = folder / "policy.yaml"

    def start(self, policy: str = POLICY, *options: str) -> None:
        """Start the agent with a policy, and wait until it has registered."""
        self._policy.write_text(policy.replace("LIBRARY", str(self.library)))
        self._policy.chmod(0o644)
        self.agent.start("--match-socket", str(self.socket), "--policy", str(self._policy), *options)
        self.agent.wait_until_ready()

    def restart(self) -> None:
        """Kill the agent and start it again with the same policy."""
        self.agent.kill()
        self.start(self._policy.read_text())

    def ask(self, **given: str) -> dict[str, str]:
        """Return the answer to a submission, the variables as `$NAME`."""
        pairs = {"kind": "sbatch", "name": "job", "program": "job.sh", "arg": "sbatch", **given}
        answer = client.talk(str(self.socket), protocol.ASK, pairs.items(), 30)
        found = {}
        for key, value in answer:
            name, separator, text = value.partition("=")
            found.update({f"${name}": text} if key == "set" and separator else {key: value})
        return found

    def reported(self, number: int = 1) -> list[matching_pb2.JobReport]:
        """Wait until this many jobs are reported, and return the reports."""
        self.far_side.wait_for(lambda: len(self.far_side.reports) >= number)
        return list(self.far_side.reports.values())


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A library that does nothing, to preload. Every user may read it."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "empty.c").write_text("int trimtab_test_library;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libsolver.so", folder / "empty.c"], check=True)
    return folder / "libsolver.so"


@pytest.fixture
def matching(tmp_path: Path, far_side: FarSide, library: Path) -> Iterator[Matching]:
    """An agent that has not been started yet. Every job resembles a record of the component `solver`."""
    agent = AgentProcess(tmp_path, far_side.port)
    agent.components.mkdir()
    (agent.components / "solver.yaml").write_text(COMPONENT)
    far_side.resemble("solver", threads=8)
    yield Matching(tmp_path, far_side, agent, library)
    agent.clear_away()
