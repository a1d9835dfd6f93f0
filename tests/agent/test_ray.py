"""The Ray runner, alone and in an agent, against a real Ray, and against a dashboard of our own for what a real one
does only once in a while. What it has in common with every runner is tested in tests/contract/test_runners.py."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agent.conftest import AgentProcess, processes_of, run_agent_command, wait_until
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_daemon_faults import settled_once
from tests.agent.test_slurm import GATED, gated_agent, job, until
from tests.factories.ports import free_port
from tests.factories.ray import CPUS, RayHead, ray_head
from trimtab_agent import trying
from trimtab_agent.errors import ConfigError, NotAcceptedError, SchedulerAwayError, UnsuitableValueError
from trimtab_agent.main import main
from trimtab_agent.runners import ray as ray_runner
from trimtab_agent.runners.base import RESULT, JobResult, JobState
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.batch import CANCEL, SHORTEST_PAUSE
from trimtab_agent.runners.ray import RayRunner
from trimtab_agent.runners.ray_client import choose_address
from trimtab_agent.runners.ray_states import FAILURES, NEVER_STARTED, STATES, meaning_of
from trimtab_agent.runners.slurm_client import PROGRAMS


@pytest.fixture
def runner(ray_session: RayHead) -> Iterator[RayRunner]:
    made = RayRunner(ray_session.dashboard)
    yield made
    made.close()


async def ended(runner: RayRunner, folder: Path, seconds: float = 60.0) -> JobResult:
    return await asyncio.wait_for(runner.wait(folder), seconds)


def resources_of(head: RayHead, folder: Path) -> dict[str, float]:
    """What the folder's job was given by Ray."""
    name = (folder / "job").read_text()
    with urllib.request.urlopen(f"{head.dashboard}/api/v0/actors?detail=1&limit=10000", timeout=60) as answer:
        actors = json.load(answer)["data"]["result"]["result"]
    [found] = [actor["required_resources"] for actor in actors if name in actor["name"]]
    return dict(found)


# -- what Ray says


def test_every_state_has_a_meaning() -> None:
    code = "from ray.job_submission import *; print(*JobStatus); print(*JobErrorType, sep=' ')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    states, errors = done.stdout.splitlines()
    assert set(states.split()) == set(STATES)
    assert {error.removeprefix("JobErrorType.") for error in errors.split()} == set(FAILURES)
    assert set(FAILURES) >= NEVER_STARTED


@pytest.mark.parametrize(
    ("state", "error", "message", "code", "outcome", "reason"),
    [
        ("PENDING", "", "", None, None, ""),
        ("RUNNING", "", "", None, None, ""),
        ("OF A LATER RAY", "", "", None, None, ""),
        ("STOPPED", "", "", None, Ended.FAILED, "the job was stopped in Ray, not by the service"),
        ("SUCCEEDED", "", "", 0, Ended.FAILED, "is that shared?"),
        ("FAILED", "", "", None, Ended.FAILED, "the job failed in Ray"),
        ("FAILED", "OF A LATER RAY", "why\nmore", None, Ended.FAILED, "the job failed in Ray: why"),
        ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED", "The node has died", None, Ended.FAILED, "died, perhaps with its node"),
        ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED", "node is running low on memory", None, Ended.FAILED, "out of memory"),
        ("FAILED", "JOB_ENTRYPOINT_COMMAND_ERROR", "log", -9, Ended.FAILED, "supervisor process was killed"),
        ("FAILED", "JOB_ENTRYPOINT_COMMAND_ERROR", "log", 2, Ended.FAILED, "without a result, with exit code 2"),
        ("FAILED", "RUNTIME_ENV_SETUP_FAILURE", "pip", None, Ended.FAILED, "its runtime environment on the node: pip"),
    ],
)
def test_whose_fault_a_state_is(
    state: str, error: str, message: str, code: int | None, outcome: Ended | None, reason: str
) -> None:
    meaning = meaning_of(state, error, message, code)
    assert meaning.outcome is outcome
    assert reason in meaning.reason


# -- on a real Ray


async def test_resources_of_jobs_and_who_decides(ray_session: RayHead, tmp_path: Path) -> None:
    """The trial's own before the administrator's, before a node of its own, before one CPU."""
    runner = RayRunner(ray_session.dashboard, ["--num-cpus=0.5", "--memory=1048576"])
    plain = RayRunner(ray_session.dashboard)
    folder, spec = job(tmp_path, "own", "sh", "-c", 'echo "$RAY_ADDRESS"', own_env=[])
    jobs: list[tuple[RayRunner, Path, float]] = []
    for name, one, changes, cpus in (
        ("own", runner, {"scheduler_options": ["--num-cpus=2"], "exclusive": True}, 2),
        ("given", runner, {"exclusive": True}, 0.5),
        ("alone", plain, {"exclusive": True}, CPUS),
        ("one", plain, {}, 1),
    ):
        if name != "own":
            folder, _ = job(tmp_path, name, "true")
        place = {"work": str(folder / "work"), "cwd": str(folder / "work")}
        await one.submit(folder, replace(spec, **place, **changes))  # type: ignore[arg-type]
        jobs.append((one, folder, cpus))
    for one, folder, cpus in jobs:
        result = await ended(one, folder)
        assert result.outcome is Ended.COMPLETED, result.reason
        memory = {"memory": 1048576} if one is runner else {}
        assert resources_of(ray_session, folder) == {"CPU": cpus, **memory}
    # a program that uses Ray finds the cluster that it is on
    assert ray_session.address.rpartition(":")[2] in (tmp_path / "jobs" / "own" / "log").read_text()
    runner.close()
    plain.close()


async def test_a_job_that_waits_in_vain_says_so_and_can_be_cancelled(runner: RayRunner, tmp_path: Path) -> None:
    folder, spec = job(tmp_path, "large", "true", scheduler_options=["--num-cpus=1000", '--resources={"bench": 1}'])
    await runner.submit(folder, spec)
    waiting = asyncio.create_task(runner.wait(folder))
    await until(lambda: runner.waiting(folder), 60)
    assert runner.waiting(folder).endswith("waits: no node of the cluster has 1 bench, 1000 CPU")
    assert await runner.status(folder) is JobState.QUEUED
    await runner.cancel(folder)
    result = await asyncio.wait_for(waiting, 60)
    assert (result.outcome, result.elapsed) == (Ended.CANCELLED, 0.0)
    assert runner.waiting(folder) == ""


async def test_a_worker_that_is_killed_fails_its_job_and_leaves_nothing(runner: RayRunner, tmp_path: Path) -> None:
    """Ray's process that keeps the job, as when its node ends it."""
    folder, spec = job(tmp_path, "lost", "sh", "-c", "setsid sleep 60 & sleep 60")
    await runner.submit(folder, spec)
    await until((folder / "running").exists, 60)
    supervisor = psutil.Process(int((folder / "pid").read_text().split()[0]))
    keeper = supervisor.parent()
    assert keeper is not None
    assert "JobSupervisor" in " ".join(keeper.cmdline())
    keeper.kill()
    result = await ended(runner, folder)
    assert result.outcome is Ended.FAILED
    assert "the job's process in Ray died, perhaps with its node" in result.reason
    assert result.node == os.uname().nodename
    await until(lambda: processes_of(folder) == [], 60)


async def test_a_head_that_is_lost_and_started_anew(tmp_path: Path) -> None:
    """Its jobs are forgotten: what ran is gone and has failed, what comes meanwhile waits for the new head."""
    with ray_head() as head:
        runner = RayRunner(head.dashboard)
        folder, spec = job(tmp_path, "before", "sh", "-c", "setsid sleep 100 & sleep 100")
        await runner.submit(folder, spec)
        waiting = asyncio.create_task(runner.wait(folder))
        await until((folder / "running").exists, 60)
        head.lose()
        later, spec = job(tmp_path, "later", "true")
        submitting = asyncio.create_task(runner.submit(later, spec))
        await until(lambda: processes_of(folder) == [], 60)
        assert not waiting.done()
        assert not submitting.done()
        await asyncio.to_thread(head.stop)
        await asyncio.to_thread(head.start)
        result = await asyncio.wait_for(waiting, 60)
        assert result.outcome is Ended.FAILED
        assert result.reason == "the job is gone from Ray without a result: was its head started anew?"
        assert (result.node, result.elapsed > 0) == (os.uname().nodename, True)
        assert await runner.status(folder) is JobState.ABSENT
        await asyncio.wait_for(submitting, 60)
        assert (await ended(runner, later)).outcome is Ended.COMPLETED
        runner.close()


# -- in an agent


@pytest.fixture
def agent(tmp_path: Path, far_side: FarSide) -> Iterator[AgentProcess]:
    """An agent that has not been started yet; it is, with `start(*on(ray_session))`."""
    (tmp_path / "runs").touch()
    made = gated_agent(tmp_path, far_side)
    yield made
    made.clear_away()


def on(head: RayHead, *options: str) -> list[str]:
    return ["--runner", "ray", "--ray-address", head.dashboard, *options]


def test_agent_killed_with_jobs_pending_running_and_done(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, ray_session: RayHead
) -> None:
    options = on(ray_session, "--slots", "3", f"--ray-option=--num-cpus={CPUS // 2}")
    agent.start(*options)
    done, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_until(lambda: sorted((tmp_path / "runs").read_text().split()) == ["1.0", "2.0"], 120)
    pending = far_side.offer("gated", application="gate", x=3.0)
    wait_until(lambda: len(list(agent.state.glob("leases/*/job"))) == 3)
    agent.kill()
    (tmp_path / "gate1.0").touch()
    wait_until(lambda: list(agent.state.glob("leases/*/result.json")))
    agent.start(*options)
    assert far_side.outcome(done).metrics["value"] == 1.0
    for x in (2.0, 3.0):
        (tmp_path / f"gate{x}").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    assert far_side.outcome(pending).metrics["value"] == 3.0
    for lease in (done, running, pending):
        settled_once(far_side, lease)
    assert sorted((tmp_path / "runs").read_text().split()) == ["1.0", "2.0", "3.0"]


def test_cancelled_by_the_service_and_given_back(agent: AgentProcess, far_side: FarSide, ray_session: RayHead) -> None:
    """The agent stays small, too."""
    agent.start(*on(ray_session, "--slots", "2"))
    cancelled, released = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    far_side.wait_for(lambda: all(far_side.elapsed.get(lease, 0.0) > 0.3 for lease in (cancelled, released)), 120)
    assert agent.process
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 60 * 1024
    far_side.to_cancel[cancelled] = "pruned"
    settled = far_side.outcome(cancelled)
    assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_CANCELLED, "pruned")
    agent.stop()
    assert far_side.settled[released].outcome == Outcome.OUTCOME_RELEASED
    assert list((agent.state / "leases").iterdir()) == []
    assert processes_of(agent.state) == []


def test_the_agent_imports_nothing_of_ray() -> None:
    code = "import sys, trimtab_agent.main, trimtab_agent.runners.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- where it is, and what may be asked


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "http://127.0.0.1:8265"),
        ("http://head:8265/", "http://head:8265"),
        ("https://[::1]/ray/", "https://[::1]/ray"),
        ("ray://head:10001", "http://head:8265"),
        ("ray://[::1]", "http://[::1]:8265"),
        ("head:6379", "http://head:8265"),
        ("head", "try --ray-address=http://head:8265"),
        ("auto", "'auto' is not http://HOST:8265"),
        ("ray://head/path", "is not http://HOST:8265"),
        ("ftp://head", "is not http://HOST:8265"),
        ("http://", "is not http://HOST:8265"),
    ],
)
def test_addresses(given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("RAY_API_SERVER_ADDRESS", raising=False)
    if expected.startswith("http"):
        assert choose_address(given) == expected
        monkeypatch.setenv("RAY_ADDRESS", given or expected)
        assert choose_address(None) == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            choose_address(given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ray-option=--cpus=1"], "scheduler option '--cpus=1' is none of Ray's; allowed: --num-cpus=N"),
        (["--ray-option=--num-cpus=all"], "--num-cpus='all'; allowed: a number from 0 on"),
        (["--ray-option=--memory=1.5"], "--memory='1.5'; allowed: a whole number of bytes"),
        (["--ray-option=--resources=[1]"], "allowed: a JSON object whose values are each a number from 0 on"),
        (['--ray-option=--label-selector={"a": 1}'], "allowed: a JSON object whose values are each a text"),
        (["--ray-address=ray:head"], "--ray-address 'ray:head' is not http://HOST:8265"),
        (["--trial-cores=1"], "--trial-cores has a meaning only with --runner local; ray's: --ray-option"),
        (["--slurm-option=--mem=1"], "--slurm-option '--mem=1' has a meaning only with --runner slurm"),
        (["--runner", "local", "--ray-option=--num-cpus=1"], "has a meaning only with --runner ray"),
        (["--runner", "local", "--ray-address=http://head"], "has a meaning only with --runner ray"),
    ],
)
def test_wrong_options(tmp_path: Path, options: list[str], words: str) -> None:
    (tmp_path / "c.yaml").write_text(GATED)
    done = run_agent_command(["try", "gated", "--components", str(tmp_path), "--runner", "ray", *options])
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize("runner", ["ray", "slurm"])
def test_a_try_gives_a_scheduler_up_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], runner: str
) -> None:
    monkeypatch.setattr(trying, "PATIENCE", 0.5)
    (tmp_path / "c.yaml").write_text(GATED)
    where = ["--components", str(tmp_path), "--state-dir", str(tmp_path / "state"), "--runner", runner]
    if runner == "ray":
        where += [f"--ray-address=http://127.0.0.1:{free_port()}"]
        words = [where[-1].partition("=")[2], "Connection refused", "check that Ray's head runs", "--ray-address"]
    else:
        for program in PROGRAMS:
            (tmp_path / program).write_text(
                "#!/bin/sh\necho 'Unable to contact slurm controller (connect failure)' >&2; exit 1"
            )
            (tmp_path / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        words = ["Unable to contact slurm controller", "check that slurmctld runs", "SLURM_CONF"]
    with pytest.raises(SystemExit) as end:
        main(["try", "gated", *where])
    assert end.value.code == 1
    told = capsys.readouterr().err
    for word in ("given up after", *words):
        assert word in told
    assert list((tmp_path / "state" / "tries").iterdir()) == []


async def test_a_try_ends_what_a_head_that_is_lost_has_begun(
    far: "Far", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "PATIENCE", 0.5)
    folder, spec = job(tmp_path, "one", "true")
    runner = RayRunner(far.address)
    trial = asyncio.create_task(trying._run(folder, spec, runner))
    await until(lambda: bool(far.board.jobs))
    far.server.shutdown()
    far.server.server_close()
    with pytest.raises(SchedulerAwayError, match=far.address):
        await trial
    # what a supervisor looks for
    assert (folder / CANCEL).exists()


# -- what a real Ray does only once in a while


class Board(BaseHTTPRequestHandler):
    """A dashboard that answers as it is told to, and runs nothing."""

    jobs: dict[str, dict[str, Any]]
    calls: list[tuple[str, str]]
    # what is answered to the next submissions: a status, and whether the job is taken all the same
    failures: list[tuple[int, str, bool]]

    def do_GET(self) -> None:
        self.calls.append(("GET", self.path))
        self.server.headers_seen = dict(self.headers)  # type: ignore[attr-defined]
        if self.path == "/api/jobs/":
            self._answer(200, list(self.jobs.values()))
        else:
            node = {"state": "ALIVE", "resources_total": {"CPU": 4.0, "memory": 1e9}}
            self._answer(200, {"data": {"result": {"result": [node]}}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        self.calls.append(("POST", self.path))
        if self.path != "/api/jobs/":
            self._answer(200, {"stopped": True})
            return
        name = body["submission_id"]
        status, text, taken = self.failures.pop(0) if self.failures else (200, "", True)
        if name in self.jobs:
            status, text, taken = (
                400,
                f"Traceback\nValueError: Job with submission_id {name} already exists. Use",
                False,
            )
        if taken:
            self.jobs[name] = {"submission_id": name, "status": "PENDING", **body}
        self._answer(status, text or {"submission_id": name})

    def _answer(self, status: int, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Far:
    """A running `Board`."""

    def __init__(self) -> None:
        class OneBoard(Board):
            pass

        self.board = OneBoard
        OneBoard.jobs, OneBoard.calls, OneBoard.failures = {}, [], []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.board)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self, folder: Path, **fields: Any) -> None:
        self.board.jobs[(folder / "job").read_text()].update(fields)


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def simulated(far: Far, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayRunner]:
    monkeypatch.setattr(ray_runner, "SUBMIT_PAUSE", 0.01)
    made = RayRunner(far.address)
    yield made
    made.close()


async def test_a_submission_whose_answer_is_lost_is_not_made_twice(
    simulated: RayRunner, far: Far, tmp_path: Path
) -> None:
    far.board.failures += [(503, "starting", False), (500, "Traceback\nTimeoutError", True)]
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    assert list(far.board.jobs) == [(folder / "job").read_text()]
    assert far.board.calls.count(("POST", "/api/jobs/")) == 3


@pytest.mark.parametrize("asks", [False, True])
async def test_what_is_refused(simulated: RayRunner, far: Far, tmp_path: Path, asks: bool) -> None:
    folder, spec = job(tmp_path, "one", "true", scheduler_options=["--nodes=2"], asks=asks)
    with pytest.raises(UnsuitableValueError if asks else NotAcceptedError, match="'--nodes=2' is none of Ray's"):
        await simulated.submit(folder, spec)
    far.board.failures += [(400, "Traceback\nValueError: no such label", False)]
    with pytest.raises(NotAcceptedError, match=r"the job was refused: .* 400 ValueError: no such label"):
        await simulated.submit(folder, replace(spec, scheduler_options=[]))
    assert far.board.jobs == {}


async def test_one_call_for_all_jobs(simulated: RayRunner, far: Far, tmp_path: Path) -> None:
    folders = []
    for number in range(20):
        folder, spec = job(tmp_path, str(number), "true")
        await simulated.submit(folder, spec)
        folders.append(folder)
    waiting = [asyncio.create_task(simulated.wait(folder)) for folder in folders]
    await until(lambda: far.board.calls.count(("GET", "/api/jobs/")) >= 3)
    began = time.monotonic()
    before = far.board.calls.count(("GET", "/api/jobs/"))
    for folder in folders:
        (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.COMPLETED))))
    await asyncio.wait_for(asyncio.gather(*waiting), 60)
    looks = (time.monotonic() - began) / SHORTEST_PAUSE
    assert far.board.calls.count(("GET", "/api/jobs/")) - before <= looks + 2
    assert not [path for _, path in far.board.calls if path not in ("/api/jobs/", "/api/v0/nodes?detail=1&limit=10000")]


@pytest.mark.parametrize(
    ("options", "asks", "outcome"),
    [
        (["--num-cpus=4"], True, None),
        (["--num-cpus=5"], False, Ended.FAILED),
        (["--num-cpus=5"], True, Ended.INFEASIBLE),
    ],
)
async def test_a_job_that_ray_has_let_wait_for_too_long(
    simulated: RayRunner, far: Far, tmp_path: Path, options: list[str], asks: bool, outcome: Ended | None
) -> None:
    """It is submitted again as long as some node has what it asks for."""
    folder, spec = job(tmp_path, "one", "true", scheduler_options=options, asks=asks)
    await simulated.submit(folder, spec)
    first = (folder / "job").read_text()
    waiting = asyncio.create_task(simulated.wait(folder))
    far.end(folder, status="FAILED", error_type="JOB_SUPERVISOR_ACTOR_START_TIMEOUT", message="Too late.")
    if outcome is None:
        await until(lambda: len(far.board.jobs) == 2)
        assert (folder / "job").read_text() != first
        (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.COMPLETED))))
        outcome = Ended.COMPLETED
    result = await asyncio.wait_for(waiting, 60)
    assert result.outcome is outcome
    if outcome is not Ended.COMPLETED:
        assert result.reason == "the job can never start: no node of the cluster has 5 CPU"
    assert (folder / RESULT).exists() == (outcome is not Ended.FAILED)


async def test_a_supervisor_that_ray_has_forgotten_is_ended_before_the_trial_has_failed(
    simulated: RayRunner, far: Far, tmp_path: Path
) -> None:
    """A node may not have noticed yet that the head was started anew."""
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    (folder / "owner").write_text(json.dumps(["x", 0, "node7"]))
    far.board.jobs.clear()
    waiting = asyncio.create_task(simulated.wait(folder))
    await until((folder / "cancel").exists)
    (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.CANCELLED, "cancelled"))))
    result = await asyncio.wait_for(waiting, 60)
    assert (result.outcome, result.node) == (Ended.FAILED, "node7")
    assert await simulated.status(folder) is JobState.ABSENT


@pytest.mark.parametrize(("mode", "sent"), [("token", "Bearer secret"), (None, "Bearer secret"), ("disabled", None)])
async def test_a_token_is_sent_as_ray_has_it(
    simulated: RayRunner, far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str | None, sent: str | None
) -> None:
    """A cluster wants the token that is there, even where nobody has set the mode."""
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("RAY_AUTH_MODE", mode) if mode else monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    folder, spec = job(tmp_path, "one", "true", exclusive=True)
    await simulated.submit(folder, spec)
    assert far.server.headers_seen.get("Authorization") == sent  # type: ignore[attr-defined]
    assert far.board.jobs[(folder / "job").read_text()]["entrypoint_num_cpus"] == 4


async def test_a_cluster_that_wants_a_token_says_where_it_is_looked_for(
    simulated: RayRunner, far: Far, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    far.board.failures.append((401, "Unauthorized: Missing authentication token", False))
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    assert (
        "401 Unauthorized: Missing authentication token: the cluster's token is wanted in RAY_AUTH_TOKEN" in caplog.text
    )
