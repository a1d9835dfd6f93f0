"""Crashes, restarts and full disks in every runner."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.contract.runners.jobs import job, left_behind, metric, run, shell
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.runners.base import JobState, Outcome, Runner
from trimtab_agent.runners.slurm import SlurmRunner


async def test_jobs_are_followed_by_another_runner(
    make_runner: Callable[[], Runner], folder: Path, programs_start: None
) -> None:
    first, second = make_runner(), make_runner()
    gate = folder / "work" / "gate"
    await first.submit(folder, shell(folder, f"until [ -e {gate} ]; do sleep 0.02; done; echo end"))
    assert await second.status(folder) in (JobState.QUEUED, JobState.RUNNING)
    gate.touch()
    result = await asyncio.wait_for(second.wait(folder), PATIENCE)
    assert result.outcome is Outcome.COMPLETED
    assert await first.wait(folder) == result
    first.close()
    second.close()


async def test_jobs_are_cancelled_by_another_runner(
    make_runner: Callable[[], Runner], folder: Path, programs_start: None
) -> None:
    first, second = make_runner(), make_runner()
    await first.submit(folder, job(folder, "sleep", "1000"))
    await second.cancel(folder)
    assert (await second.wait(folder)).outcome is Outcome.CANCELLED
    await first.wait(folder)
    first.close()
    second.close()


async def test_a_job_whose_keeper_is_killed_has_failed_and_is_gone(
    runner: Runner, folder: Path, request: pytest.FixtureRequest
) -> None:
    if isinstance(runner, SlurmRunner) and not request.getfixturevalue("slurm").tracks_all:
        pytest.skip("without cgroups Slurm does not find what a killed supervisor leaves running")
    await runner.submit(folder, shell(folder, f"touch {folder}/begun; setsid sleep 1000 & sleep 1000"))
    await wait_for_async((folder / "begun").exists)
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    result = await asyncio.wait_for(runner.wait(folder), PATIENCE)
    assert (result.outcome, result.reason) == (Outcome.FAILED, "the trial's supervisor process was killed")
    assert left_behind(folder) == []
    assert await runner.status(folder) is JobState.ABSENT
    # it can be run again, in the same folder
    assert (await run(runner, folder, job(folder, "true"))).outcome is Outcome.COMPLETED


@pytest.mark.without_ray
async def test_many_at_a_time(runner: Runner, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        (folder / "work").mkdir(parents=True)
    value = metric("value", "regex", pattern=r"v=(\d)")
    specs = [shell(f, f"sleep 0.1; echo v={n}", metrics=[value], required=["value"]) for n, f in enumerate(folders)]
    results = await asyncio.gather(*(run(runner, f, spec) for f, spec in zip(folders, specs, strict=True)))
    assert [result.metrics["value"] for result in results] == list(range(8))


async def test_nothing_stays_when_the_runner_is_closed(
    make_runner: Callable[[], Runner], folder: Path, programs_start: None
) -> None:
    # what earlier tests have left, dead children among it, is not this runner's
    before = psutil.Process().children()
    runner = make_runner()
    await run(runner, folder, job(folder, "true"))
    runner.close()
    # A query of the queue that is under way ends by itself.
    await wait_for_async(lambda: all(child in before for child in psutil.Process().children()))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.without_ray
async def test_a_trial_that_fills_the_disk_has_a_result(runner: Runner, small_disk: Path) -> None:
    (small_disk / "work").mkdir()
    script = "echo before; cat /dev/zero > big; echo v=1; exit 0"
    result = await run(runner, small_disk, shell(small_disk, script))
    assert result.outcome is Outcome.COMPLETED
    assert result.metrics["seconds"] > 0


@pytest.mark.without_ray
async def test_output_that_a_full_disk_has_lost_is_not_the_configurations_fault(
    runner: Runner, small_disk: Path
) -> None:
    (small_disk / "work").mkdir()
    value = metric("v", "regex", pattern=r"v=(\d)")
    script = "cat /dev/zero > big; echo v=1; exit 0"
    result = await run(runner, small_disk, shell(small_disk, script, metrics=[value], required=["v"]))
    assert result.outcome is Outcome.FAILED
    assert "the output could not be stored: No space left on device" in result.reason
