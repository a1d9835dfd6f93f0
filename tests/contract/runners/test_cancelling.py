"""Cancellation of jobs in every runner."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import build, job, left_behind, run
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.runners.base import JobState, Outcome, Runner
from trimtab_agent.runners.local import LocalRunner


@pytest.mark.parametrize("step", ["build", "header", "command"])
async def test_cancel(runner: Runner, folder: Path, step: str) -> None:
    script = f"touch {folder}/begun; trap '' TERM; setsid sleep 1000 & sleep 1000"
    places: dict[str, dict[str, Any]] = {
        "build": {"build": build(folder, script)},
        "header": {"header": [["sh", "-c", script]]},
        "command": {"command": ["sh", "-c", script]},
    }
    await runner.submit(folder, replace(job(folder, "true"), **places[step]))
    await wait_for_async((folder / "begun").exists)
    assert await runner.status(folder) is JobState.RUNNING
    await asyncio.wait_for(runner.cancel(folder), PATIENCE)
    assert left_behind(folder) == []
    assert (await runner.wait(folder)).outcome is Outcome.CANCELLED
    if isinstance(runner, LocalRunner):
        # The supervisor has ended them by itself: it was not killed, as one that does not answer would be.
        assert "[cancelled] cancelled\n" in (folder / "log").read_text()


async def test_cancel_at_once(runner: Runner, folder: Path) -> None:
    await runner.submit(folder, job(folder, "sleep", "1000"))
    await runner.cancel(folder)
    assert (await runner.wait(folder)).outcome is Outcome.CANCELLED


async def test_cancelling_an_ended_or_absent_job_changes_nothing(runner: Runner, folder: Path) -> None:
    await runner.cancel(folder)
    assert await runner.status(folder) is JobState.ABSENT
    result = await run(runner, folder, job(folder, "true"))
    await runner.cancel(folder)
    assert await runner.wait(folder) == result


async def test_cancelling_one_job_leaves_the_next_alone(runner: Runner, folder: Path, tmp_path: Path) -> None:
    """Also where both run in the same place, one after the other."""
    await run(runner, folder, job(folder, "true"))
    other = tmp_path / "other"
    (other / "work").mkdir(parents=True)
    await runner.submit(other, job(other, "sleep", "0.3"))
    await runner.cancel(folder)
    assert (await runner.wait(other)).outcome is Outcome.COMPLETED
