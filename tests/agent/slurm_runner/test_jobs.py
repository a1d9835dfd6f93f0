"""Jobs that a real Slurm requeues, cancels, loses or whose node it drains."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import processes_of
from tests.agent.slurm_runner.jobs import ended, job, jobs_of
from tests.contract.runners.jobs import metric
from tests.factories.patience import PATIENCE, wait_for_async
from tests.factories.slurm import Slurm
from trimtab_agent.runners import slurm as slurm_runner
from trimtab_agent.runners.base import JobState
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.slurm import SlurmRunner


async def test_a_requeued_job_starts_again_in_its_first_work_folder(
    runner: SlurmRunner, place: Path, slurm: Slurm
) -> None:
    """In a work folder as it was at first, with one result."""
    script = f"cat given; mkdir new && echo run >> {place}/runs && until [ -e {place}/gate ]; do sleep 0.05; done"
    stream = [{"source": "stdout", "pattern": "m=(?P<m>.)"}]
    folder, spec = job(place, "a", "sh", "-c", f"{script}; echo m=1", stream=stream, run=10_001)
    (folder / "work" / "given").write_text("as it was\n")
    shown = runner.script(folder, spec)
    await runner.submit(folder, spec)
    assert runner.script(folder, spec) == shown == (folder / "job.sh").read_text()
    waiting = asyncio.create_task(runner.wait(folder))
    await wait_for_async(lambda: (place / "runs").exists() and (place / "runs").read_text() == "run\n")
    assert slurm.run("sh", "-c", f"scontrol requeue {(folder / 'job').read_text()} 2>&1") == ""
    await wait_for_async(lambda: (place / "runs").read_text() == "run\nrun\n")
    assert not waiting.done()
    assert json.loads((folder / "owner").read_text())[1] == 1
    (place / "gate").touch()
    result = await asyncio.wait_for(waiting, PATIENCE)
    assert result.outcome is Ended.COMPLETED, result.reason
    assert (folder / "log").read_text().count("as it was") == 1
    # Its measurements belong to another run.
    assert [json.loads(line)["run"] for line in (folder / "measurements").read_text().splitlines()] == [10_002]


async def test_a_job_whose_folder_is_gone_ends(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sh", "-c", f"touch {place}/begun; sleep 1000")
    await runner.submit(folder, spec)
    await wait_for_async((place / "begun").exists)
    folder.rename(folder.with_name("gone"))
    await wait_for_async(lambda: jobs_of(slurm, folder) == ["FAILED"])


async def test_what_srun_starts_is_the_jobs_own(runner: SlurmRunner, place: Path) -> None:
    """Slurm's daemon starts these processes, so that they do not descend from the trial's supervisor.

    Without control groups that count CPU time, they are found by their environment, from time to time.
    """
    spin = "import time\nwhile time.process_time() < 3: pass"
    metrics = [metric("cpu", "cpu_time")]
    folder, spec = job(place, "a", "srun", "--ntasks=1", sys.executable, "-c", spin, metrics=metrics, required=["cpu"])
    await runner.submit(folder, spec)
    result = await ended(runner, folder)
    assert result.outcome is Ended.COMPLETED, result.reason
    assert 1 <= result.metrics["cpu"] <= 3.5


async def test_job_requeued_and_held(
    runner: SlurmRunner, place: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_runner, "HOPELESS_TIME", 1.0)
    folder, spec = job(place, "a", "sleep", "1000")
    await runner.submit(folder, spec)
    await runner.started(folder)
    slurm.run("scontrol", "requeuehold", (folder / "job").read_text())
    result = await ended(runner, folder)
    assert result.outcome is Ended.FAILED
    assert result.reason.startswith("the job can never start: the job was requeued and is held")
    await wait_for_async(lambda: jobs_of(slurm, folder) == ["CANCELLED"])


async def test_node_drained_while_the_job_runs(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sh", "-c", f"until [ -e {place}/gate ]; do sleep 0.05; done")
    await runner.submit(folder, spec)
    node = await asyncio.wait_for(runner.started(folder), PATIENCE)
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    (place / "gate").touch()
    result = await ended(runner, folder)
    assert (result.outcome, result.node) == (Ended.COMPLETED, node)


async def test_node_down_while_the_job_runs(place: Path, slurm: Slurm) -> None:
    runner = SlurmRunner(["--no-requeue"])
    folder, spec = job(place, "a", "sleep", "1000")
    await runner.submit(folder, spec)
    node = await asyncio.wait_for(runner.started(folder), PATIENCE)
    waiting = asyncio.create_task(runner.wait(folder))
    slurm.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    result = await asyncio.wait_for(waiting, PATIENCE)
    runner.close()
    assert (result.outcome, result.reason) == (Ended.FAILED, "a node of the job failed")


async def test_job_cancelled_by_somebody_else(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sleep", "1000")
    await runner.submit(folder, spec)
    await runner.started(folder)
    slurm.run("scancel", (folder / "job").read_text())
    result = await ended(runner, folder)
    assert (result.outcome, result.reason) == (Ended.FAILED, "the job was cancelled in Slurm, not by the service")
    # the agent may run it again
    assert await runner.status(folder) is JobState.ABSENT


@pytest.mark.parametrize("array", [False, True])
async def test_the_number_of_another_job_is_not_cancelled(
    runner: SlurmRunner, place: Path, slurm: Slurm, array: bool
) -> None:
    """Slurm gives numbers again, and a file may have been written by somebody else."""
    folder, spec = job(place, "a", "sleep", "1000")
    second, other = job(place, "b", "sleep", "1000")
    submitted = [runner.submit(folder, spec)] + ([runner.submit(second, other)] if array else [])
    await asyncio.gather(*submitted)
    await runner.started(folder)
    stranger = slurm.run("sbatch", "--parsable", "--job-name=stranger", "--wrap=sleep 1000").strip()
    own = (folder / "job").read_text()
    for forged in (stranger, f"--user={os.getuid()}", "--state=RUNNING", f"{own} {stranger}", f"{stranger}\n"):
        (folder / "job").write_text(forged)
        await runner._end_by_number(folder)
    assert slurm.run("squeue", "--noheader", f"--jobs={stranger}", "--format=%T").strip() in ("RUNNING", "PENDING")
    assert set(jobs_of(slurm, folder)) <= {"RUNNING", "PENDING"}
    (folder / "job").write_text(own)
    await runner.cancel(folder)
    assert (await ended(runner, folder)).outcome is Ended.CANCELLED
    if array:
        assert set(jobs_of(slurm, second)) <= {"RUNNING", "PENDING"}
        await runner.cancel(second)
    slurm.run("scancel", stranger)


@pytest.mark.parametrize("pending", [False, True])
async def test_cancelled_job_is_gone(runner: SlurmRunner, place: Path, slurm: Slurm, pending: bool) -> None:
    options = ["--begin=now+1hour"] if pending else []
    script = f"touch {place}/begun; trap '' TERM; setsid sleep 1000 & sleep 1000"

    def is_there() -> bool:
        return jobs_of(slurm, folder) == ["PENDING"] if pending else (place / "begun").exists()

    folder, spec = job(place, "a", "sh", "-c", script, scheduler_options=options)
    await runner.submit(folder, spec)
    await wait_for_async(is_there)
    assert await runner.status(folder) is (JobState.QUEUED if pending else JobState.RUNNING)
    await runner.cancel(folder)
    result = await ended(runner, folder)
    assert result.outcome is Ended.CANCELLED
    assert (result.elapsed > 0) is not pending
    await wait_for_async(lambda: jobs_of(slurm, folder) == ["CANCELLED"])
    await wait_for_async(lambda: processes_of(folder) == [])


async def test_a_job_that_is_gone_from_slurm(runner: SlurmRunner, place: Path) -> None:
    """No squeue, no sacct knows it: what an agent finds that was away for days."""
    folder, spec = job(place, "a", "true")
    await runner.submit(folder, spec)
    await ended(runner, folder)
    lost = place / "jobs" / "lost"
    shutil.copytree(folder, lost)
    (lost / "result.json").unlink()
    (lost / "job").write_text("999999")
    assert await runner.status(lost) is JobState.ABSENT
    result = await ended(runner, lost)
    assert (result.outcome, result.reason) == (Ended.FAILED, "the job has left Slurm without a result")
