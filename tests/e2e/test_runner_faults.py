"""A service, agents and trials, on this machine and on a real Slurm, when something breaks or is wrong: every trial
ends once, with a reason that its user sees; no job stays."""

import re
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import trimtab
from tests.agent.conftest import AgentProcess, processes_of
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from tests.factories.slurm import Slurm
from tests.marks import slow_cases
from trimtab.study import Study
from trimtab.trial import Trial

# Short, so that the tests need not wait for what a user would.
LEASE_SECONDS = 6.0
TIMES = {"TRIMTAB_LEASE_SECONDS": str(LEASE_SECONDS), "TRIMTAB_HEARTBEAT_SECONDS": "0.5"}

# `gate`: each run notes itself and waits until it is let go; the value is the number of the run.
# `faults`: each kind goes wrong in its own way.
COMPONENT = """
name: NAME
parameters:
  x: {type: int, min: 1, max: 16, default: 1, env: X}
  kind: {type: categorical, values: [good, build, missing, crlf, silent, wrong, loud], default: good, env: KIND}
  partition: {type: categorical, values: [main, nowhere], default: main, scheduler: "--partition={value}"}
build:
  commands:
    - [sh, -c, 'if [ $0 = build ]; then echo compiling; echo "cc1: error: no such flag" >&2; exit 1; fi', "{kind}"]
applications:
  gate:
    command:
      - sh
      - -c
      - >-
        echo run >> PLACE/runs-$0; run=$(wc -l < PLACE/runs-$0);
        until [ -e PLACE/open-$0-$run ]; do sleep 0.05; done; echo value=$run
      - "{x}"
  faults: {command: ["PLACE/programs/{kind}"]}
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""
PROGRAMS = {
    "good": "#!/bin/sh\necho value=1\n",
    "build": "#!/bin/sh\n",
    "crlf": "#!/bin/sh\r\necho value=1\r\n",
    "silent": "#!/bin/sh\necho nothing to say\n",
    "wrong": "#!/bin/sh\necho value=none\n",
    "loud": "#!/bin/sh\nhead -c 200000000 /dev/zero | tr '\\0' x; echo; echo value=1\n",
}


@pytest.fixture(params=["local", *slow_cases("tests/agent/slurm_runner shows faults of Slurm", "slurm")])
def runner(request: pytest.FixtureRequest) -> str:
    """The agents' runner."""
    if request.param == "slurm":
        request.getfixturevalue("slurm")
    return str(request.param)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a unique name for the component and the study, because tests share the service."""
    return f"{re.sub(r'[^a-z]+', '-', request.node.originalname)[:40]}-{uuid.uuid4().hex[:6]}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[EmbeddedService]:
    with EmbeddedService(tmp_path_factory.mktemp("service"), TIMES) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, name: str) -> Path:
    """Where trials note their runs; the component is in `components`."""
    return lay_out(tmp_path, name)


def lay_out(place: Path, name: str) -> Path:
    """Write the component of that name, and its programs."""
    (place / "components").mkdir(parents=True)
    (place / "components" / "c.yaml").write_text(COMPONENT.replace("NAME", name).replace("PLACE", str(place)))
    (place / "programs").mkdir()
    for kind, text in PROGRAMS.items():
        (place / "programs" / kind).write_text(text, newline="")
        (place / "programs" / kind).chmod(0o755)
    return place


class Agents:
    """Agents of one component, each with a state of its own."""

    def __init__(self, place: Path, runner: str, slurm: Slurm | None) -> None:
        self._place, self._runner, self._slurm = place, runner, slurm
        self._made: list[AgentProcess] = []

    def start(self, service: EmbeddedService, slots: int = 2) -> AgentProcess:
        folder = self._place / f"agent{len(self._made)}"
        folder.mkdir()
        agent = AgentProcess(folder, int(service.grpc_address.rpartition(":")[2]), service.token)
        agent.components = self._place / "components"
        self._made.append(agent)
        agent.start("--runner", self._runner, "--slots", str(slots), "--name", folder.name)
        wait_for(lambda: "ready " in agent.log or not agent.runs(), "the agent registers")
        assert agent.runs(), agent.log
        return agent

    def stop(self) -> None:
        """Stop them all; nothing of theirs may be left."""
        for agent in self._made:
            agent.stop()
            wait_for(lambda agent=agent: not processes_of(agent.state), "no process is left")  # type: ignore[misc]
            assert not list((agent.state / "leases").iterdir())
        if self._slurm:
            # a result is there some moments before Slurm has ended its job
            wait_for(lambda: self._jobs() <= {"COMPLETED", "CANCELLED", "FAILED"}, "no job is left")
            assert self._jobs()

    def _jobs(self) -> set[str]:
        """The states of their jobs."""
        jobs = self._slurm.jobs().values() if self._slurm else ()
        return {state for state, _, folder in jobs if Path(folder).is_relative_to(self._place)}

    def log(self) -> str:
        return "\n".join(agent.log[-3000:] for agent in self._made)

    def clear_away(self) -> None:
        for agent in self._made:
            agent.clear_away()


@pytest.fixture
def agents(place: Path, runner: str, request: pytest.FixtureRequest) -> Iterator[Agents]:
    made = Agents(place, runner, request.getfixturevalue("slurm") if runner == "slurm" else None)
    yield made
    made.clear_away()


@contextmanager
def client_of(service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        yield client


def create(
    client: trimtab.Client, name: str, application: str, space: list[trimtab.Parameter], **more: object
) -> Study:
    """A study that measures each point of its space once."""
    usual = {"algorithm": "grid", "parallelism": 2, "seed": 1, "resampling": "none", "final_check": False}
    given = {"component": name, **usual, **more}
    return client.create_study(
        name,
        space=space,
        objectives=[trimtab.Maximize("value")],
        application=application,
        placement=trimtab.Placement(exclusive=False),
        **given,  # type: ignore[arg-type]
    )


def run_of(place: Path, x: int) -> int:
    """How often a configuration has begun to run."""
    notes = place / f"runs-{x}"
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def let_go(place: Path, x: int, run: int = 1) -> None:
    (place / f"open-{x}-{run}").touch()


def runs(place: Path, agents: Agents, *values: int, run: int = 1) -> None:
    """Return when each of these has begun its run of this number."""
    wait_for(lambda: [run_of(place, x) for x in values] == [run] * len(values), lambda: f"{values} run\n{agents.log()}")


def trial_of(study: Study, x: int) -> Trial:
    (found,) = [trial for trial in study.trials() if trial.params["x"] == x]
    return found


def ends(study: Study, agents: Agents, state: str = "COMPLETED") -> list[Trial]:
    """The study's trials, once it is in this state."""
    try:
        wait_for(lambda: study.refresh().state == state, f"the study is {state}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{study.trials()}\n{agents.log()}") from None
    return study.trials()


def one_to(count: int) -> list[trimtab.Parameter]:
    return [trimtab.Int("x", 1, count, default=1)]


# -- what breaks


@pytest.mark.slow("starts a service twice; tests/agent/test_daemon_faults.py shows the same with a server in the test")
def test_service_away_while_jobs_end(own_service: EmbeddedService, slurm: Slurm, tmp_path: Path) -> None:
    """For longer than leases last: what has ended is reported, what runs goes on; nothing is run again."""
    own_service.environment.update(TIMES)
    own_service.start()
    fleets = {}
    for runner in ("local", "slurm"):
        fleets[runner] = Agents(lay_out(tmp_path / runner, runner), runner, slurm if runner == "slurm" else None)
    try:
        for fleet in fleets.values():
            fleet.start(own_service)
        with client_of(own_service) as client:
            studies = {runner: create(client, runner, "gate", one_to(3)) for runner in fleets}
            running = {runner: two_of(tmp_path / runner) for runner in fleets}
            own_service.kill()
            for runner, (first, _) in running.items():
                let_go(tmp_path / runner, first)
            time.sleep(2 * LEASE_SECONDS)
            own_service.start()
            for runner, study in studies.items():
                wait_for(lambda study=study: study.refresh().finished_count == 1, "the first ends")  # type: ignore[misc]
                (third,) = {1, 2, 3} - {*running[runner]}
                let_go(tmp_path / runner, third)
                wait_for(lambda study=study: study.refresh().finished_count == 2, "the last ends")  # type: ignore[misc]
            # a lease that nobody has renewed while the service was away has had time to expire
            time.sleep(LEASE_SECONDS)
            for runner, study in studies.items():
                assert trial_of(study, running[runner][1]).state == "ACTIVE"
                let_go(tmp_path / runner, running[runner][1])
                for trial in ends(study, fleets[runner]):
                    assert (trial.state, trial.attempt, trial.metrics["value"]) == ("COMPLETED", 1, 1.0)
                    assert run_of(tmp_path / runner, int(str(trial.params["x"]))) == 1
        for fleet in fleets.values():
            fleet.stop()
    finally:
        for fleet in fleets.values():
            fleet.clear_away()


def two_of(place: Path) -> list[int]:
    """The two trials that run, once they do."""
    wait_for(lambda: sum(run_of(place, x) for x in (1, 2, 3)) == 2, "two trials run")
    return [x for x in (1, 2, 3) if run_of(place, x)]


def test_an_agent_that_was_not_heard_goes_on_with_its_job(
    service: EmbeddedService, agents: Agents, place: Path, name: str
) -> None:
    """The lease has expired, but no other agent was there to take the trial."""
    agent = agents.start(service)
    with client_of(service) as client:
        study = create(client, name, "gate", one_to(1))
        runs(place, agents, 1)
        assert agent.process
        agent.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: trial_of(study, 1).state == "REQUESTED", "the lease expires")
        agent.process.send_signal(signal.SIGCONT)
        wait_for(lambda: trial_of(study, 1).state == "ACTIVE", "the agent holds it again")
        let_go(place, 1)
        (trial,) = ends(study, agents)
        assert (trial.state, trial.attempt, trial.metrics["value"]) == ("COMPLETED", 1, 1.0)
        assert run_of(place, 1) == 1
    agents.stop()


@pytest.mark.parametrize("ended", [True, False])
def test_a_late_result_counts_once_or_not_at_all(
    service: EmbeddedService, agents: Agents, place: Path, name: str, ended: bool
) -> None:
    """The lease has expired while the job ran, another agent has run the trial meanwhile; the first job has ended by
    itself since, or is ended now."""
    first = agents.start(service)
    with client_of(service) as client:
        study = create(client, name, "gate", one_to(1))
        runs(place, agents, 1)
        assert first.process
        first.process.send_signal(signal.SIGSTOP)
        if ended:
            let_go(place, 1)
        agents.start(service)
        runs(place, agents, 1, run=2)
        let_go(place, 1, run=2)
        (trial,) = ends(study, agents)
        first.process.send_signal(signal.SIGCONT)
        wait_for(lambda: not list((first.state / "leases").iterdir()), "the late result is refused or dropped")
        assert study.trials() == [trial]
        assert (trial.state, trial.agent, trial.attempt) == ("COMPLETED", "agent1", 2)
        assert trial.metrics["value"] == 2.0
    agents.stop()


# -- what is wrong


def by(parameter: str, trials: Sequence[Trial]) -> dict[object, Trial]:
    """Trials by the value of a parameter."""
    return {trial.params[parameter]: trial for trial in trials}


def test_a_failed_trial_shows_its_reason_and_the_study_continues(
    service: EmbeddedService, agents: Agents, place: Path, name: str
) -> None:
    agents.start(service)
    kinds = [*PROGRAMS, "missing"]
    with client_of(service) as client:
        study = create(client, name, "faults", [trimtab.Categorical("kind", kinds, default="good")])
        found = by("kind", ends(study, agents))
        assert {kind: trial.state for kind, trial in found.items()} == {
            "good": "COMPLETED",
            "build": "INFEASIBLE",
            "missing": "FAILED",
            "crlf": "FAILED",
            "silent": "INFEASIBLE",
            "wrong": "INFEASIBLE",
            "loud": "COMPLETED",
        }
        programs = place / "programs"
        assert found["build"].reason == "build: sh ended with exit code 1\ncompiling\ncc1: error: no such flag"
        missing = f"command: '{programs}/missing' cannot be started: No such file or directory"
        assert found["missing"].reason == missing
        crlf = "its lines end with CRLF, as on Windows; use LF only (dos2unix)"
        assert found["crlf"].reason == f"command: '{programs}/crlf' cannot be started: {crlf}"
        nothing = "metric 'value': nothing in stdout matches 'value=(\\\\S+)'\nnothing to say"
        assert found["silent"].reason == nothing
        assert found["wrong"].reason == "metric 'value': 'none' is not a number\nvalue=none"
        assert (found["missing"].attempt, found["build"].attempt) == (3, 1)
        # the end of a log comes after the result
        loud = found["loud"].number
        wait_for(lambda: "value=1" in study.trial(loud).log[-600:], "the log's end has come")
        log = study.trial(loud).log
        assert len(log) < 70_000
        assert "bytes omitted" in log
    agents.stop()


@pytest.mark.parametrize("runner", ["slurm"], indirect=True)
def test_a_partition_that_does_not_exist(service: EmbeddedService, agents: Agents, name: str) -> None:
    agents.start(service)
    with client_of(service) as client:
        partition = trimtab.Categorical("partition", ["main", "nowhere"], default="main")
        study = create(client, name, "faults", [partition])
        found = by("partition", ends(study, agents))
        assert found["main"].state == "COMPLETED"
        assert found["nowhere"].state == "FAILED"
        assert "invalid partition specified: nowhere" in found["nowhere"].reason
    agents.stop()


def test_the_same_failure_ten_times_in_a_row(service: EmbeddedService, agents: Agents, place: Path, name: str) -> None:
    """The study pauses with a reason. After a repair it can be resumed and completes."""
    agents.start(service, slots=4)
    program = place / "programs" / "missing"
    with client_of(service) as client:
        study = create(client, name, "faults", [trimtab.Categorical("kind", ["missing"]), *one_to(16)], parallelism=4)
        ends(study, agents, "PAUSED")
        assert study.status.reason.startswith(
            f"10 trials in a row are FAILED for the same reason: command: '{program}' cannot be started: No such file"
        )
        assert study.status.reason.endswith("resume the study.")
        program.write_text(PROGRAMS["good"])
        program.chmod(0o755)
        wait_for(lambda: not study.trials(states=["ACTIVE"]), "those that ran have ended")
        study.resume()
        states = Counter(str(trial.state) for trial in ends(study, agents))
        assert set(states) == {"FAILED", "COMPLETED"}
        assert sum(states.values()) == 16
        assert 10 <= states["FAILED"] <= 13, "with those that ran when it was paused"
    agents.stop()


def reported(study: Study) -> str:
    """Return the reason of the first trial."""
    return study.trials()[0].reason


@pytest.mark.parametrize("runner", ["local"], indirect=True)
def test_a_trial_explains_that_no_agent_offers_its_component(
    service: EmbeddedService, agents: Agents, name: str
) -> None:
    """The trial says so; once somebody has it, it is run."""
    with client_of(service) as client:
        study = create(client, name, "faults", one_to(1), digest="ab" * 32)
        wait_for(lambda: reported(study) == "Waits for an agent: none is online.", "reported")
        agents.start(service)
        mine = next(agent for agent in client.list_agents() if agent.online)
        digest = mine.components[0].digest
        expected = f"with digest abababababab; those online have {digest[:12]} (agent0). Its files have been changed"
        wait_for(lambda: expected in reported(study), "reported")
        other = create(client, f"{name}-2", "faults", one_to(1), component="none")
        wait_for(lambda: reported(other).startswith("Waits for an agent that offers component 'none'"), "reported")
        right = create(client, f"{name}-3", "faults", one_to(1), component=name, digest=digest)
        assert [trial.state for trial in ends(right, agents)] == ["COMPLETED"]
        for one in (study, other):
            one.stop()
    agents.stop()
