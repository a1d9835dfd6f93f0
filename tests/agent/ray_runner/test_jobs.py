"""Jobs on a real Ray."""

import asyncio
import json
import os
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.agent.conftest import processes_of
from tests.agent.ray_runner.board import ended
from tests.agent.slurm_runner.jobs import job
from tests.factories.patience import PATIENCE, wait_for_async
from tests.factories.ray import CPUS, RayHead, ray_head
from trimtab_agent.runners.base import JobState
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.ray import RayRunner


def resources_of(head: RayHead, folder: Path) -> dict[str, float]:
    """Return the resources that Ray gave to the folder's job."""
    name = (folder / "job").read_text()
    with urllib.request.urlopen(f"{head.dashboard}/api/v0/actors?detail=1&limit=10000", timeout=PATIENCE) as answer:
        actors = json.load(answer)["data"]["result"]["result"]
    [found] = [actor["required_resources"] for actor in actors if name in actor["name"]]
    return dict(found)


async def test_a_trials_own_resources_precede_the_administrators_and_the_default(
    ray_session: RayHead, tmp_path: Path
) -> None:
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
    await wait_for_async(lambda: runner.waiting(folder))
    assert runner.waiting(folder).endswith("waits: no node of the cluster has 1 bench, 1000 CPU")
    assert await runner.status(folder) is JobState.QUEUED
    await runner.cancel(folder)
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert (result.outcome, result.elapsed) == (Ended.CANCELLED, 0.0)
    assert runner.waiting(folder) == ""


async def test_a_worker_that_is_killed_fails_its_job_and_leaves_nothing(runner: RayRunner, tmp_path: Path) -> None:
    """Ray's process that keeps the job, as when its node ends it."""
    folder, spec = job(tmp_path, "lost", "sh", "-c", "setsid sleep 1000 & sleep 1000")
    await runner.submit(folder, spec)
    await wait_for_async((folder / "running").exists)
    supervisor = psutil.Process(int((folder / "pid").read_text().split()[0]))
    keeper = supervisor.parent()
    assert keeper is not None
    assert "JobSupervisor" in " ".join(keeper.cmdline())
    keeper.kill()
    result = await ended(runner, folder)
    assert result.outcome is Ended.FAILED
    assert "the job's process in Ray died, perhaps with its node" in result.reason
    assert result.node == os.uname().nodename
    await wait_for_async(lambda: processes_of(folder) == [])


@pytest.mark.slow("starts a second head of Ray")
async def test_a_ray_head_is_lost_and_started_again(tmp_path: Path, programs_start: None) -> None:
    """Its jobs are forgotten: what ran is gone and has failed, what comes meanwhile waits for the new head."""
    with ray_head() as head:
        runner = RayRunner(head.dashboard)
        folder, spec = job(tmp_path, "before", "sh", "-c", "setsid sleep 1000 & sleep 1000")
        await runner.submit(folder, spec)
        waiting = asyncio.create_task(runner.wait(folder))
        await wait_for_async((folder / "running").exists)
        head.lose()
        later, spec = job(tmp_path, "later", "true")
        submitting = asyncio.create_task(runner.submit(later, spec))
        await wait_for_async(lambda: processes_of(folder) == [])
        assert not waiting.done()
        assert not submitting.done()
        await asyncio.to_thread(head.stop)
        await asyncio.to_thread(head.start)
        result = await asyncio.wait_for(waiting, PATIENCE)
        assert result.outcome is Ended.FAILED
        assert result.reason == "the job has left Ray without a result: was its head restarted?"
        assert (result.node, result.elapsed > 0) == (os.uname().nodename, True)
        assert await runner.status(folder) is JobState.ABSENT
        await asyncio.wait_for(submitting, PATIENCE)
        assert (await ended(runner, later)).outcome is Ended.COMPLETED
        runner.close()
