"""Situations that a real Ray seldom creates, on a simulated dashboard."""

import asyncio
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.agent.ray_runner.board import Far
from tests.agent.slurm_runner.jobs import job
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.errors import NotAcceptedError
from trimtab_agent.runners.base import RESULT, JobResult, JobState
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.batch import SHORTEST_PAUSE
from trimtab_agent.runners.ray import RayRunner
from trimtab_components.errors import UnsuitableValueError


async def test_a_submission_whose_answer_is_lost_is_not_made_twice(
    simulated: RayRunner, far: Far, tmp_path: Path
) -> None:
    far.board.failures += [(503, "starting", False), (500, "Traceback\nTimeoutError", True)]
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    assert list(far.board.jobs) == [(folder / "job").read_text()]
    assert far.board.calls.count(("POST", "/api/jobs/")) == 3


@pytest.mark.parametrize("asks", [False, True])
async def test_unsuitable_options_and_refused_jobs_raise(
    simulated: RayRunner, far: Far, tmp_path: Path, asks: bool
) -> None:
    folder, spec = job(tmp_path, "one", "true", scheduler_options=["--nodes=2"], asks=asks)
    with pytest.raises(UnsuitableValueError if asks else NotAcceptedError, match="'--nodes=2' is not an option of Ray"):
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
    await wait_for_async(lambda: far.board.calls.count(("GET", "/api/jobs/")) >= 3)
    began = time.monotonic()
    before = far.board.calls.count(("GET", "/api/jobs/"))
    for folder in folders:
        (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.COMPLETED))))
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
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
        await wait_for_async(lambda: len(far.board.jobs) == 2)
        assert (folder / "job").read_text() != first
        (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.COMPLETED))))
        outcome = Ended.COMPLETED
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert result.outcome is outcome
    if outcome is not Ended.COMPLETED:
        assert result.reason == "the job can never start: no node of the cluster has 5 CPU"
    assert (folder / RESULT).exists() == (outcome is not Ended.FAILED)


async def test_a_supervisor_that_ray_has_forgotten_is_ended_before_the_trial_has_failed(
    simulated: RayRunner, far: Far, tmp_path: Path
) -> None:
    """A node may not have noticed yet that the head was started again."""
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    (folder / "owner").write_text(json.dumps(["x", 0, "node7"]))
    far.board.jobs.clear()
    waiting = asyncio.create_task(simulated.wait(folder))
    await wait_for_async((folder / "cancel").exists)
    (folder / RESULT).write_text(json.dumps(asdict(JobResult(Ended.CANCELLED, "cancelled"))))
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert (result.outcome, result.node) == (Ended.FAILED, "node7")
    assert await simulated.status(folder) is JobState.ABSENT


@pytest.mark.parametrize(("mode", "sent"), [("token", "Bearer secret"), (None, "Bearer secret"), ("disabled", None)])
async def test_a_token_is_sent_in_the_form_that_ray_expects(
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


async def test_the_error_for_a_missing_token_names_where_it_is_looked_for(
    simulated: RayRunner, far: Far, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    far.board.failures.append((401, "Unauthorized: Missing authentication token", False))
    folder, spec = job(tmp_path, "one", "true")
    await simulated.submit(folder, spec)
    assert "401 Unauthorized: Missing authentication token: put the cluster's token into RAY_AUTH_TOKEN" in caplog.text
