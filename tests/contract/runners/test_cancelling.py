"""Cancellation of jobs in every runner."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import ATTEMPTS, another, build, job, left_behind, run
from tests.factories.patience import wait_for_async
from trimtab_agent.runners.base import JobState, Outcome, Runner


@pytest.mark.parametrize("step", ["build", "header", "command"])
async def test_cancel(runner: Runner, folder: Path, step: str) -> None:
    for attempt in range(ATTEMPTS):
        place = another(folder, attempt)
        script = f"touch {place}/begun; trap '' TERM; setsid sleep 60 & sleep 60"
        places: dict[str, dict[str, Any]] = {
            "build": {"build": build(place, script)},
            "header": {"header": [["sh", "-c", script]]},
            "command": {"command": ["sh", "-c", script]},
        }
        await runner.submit(place, replace(job(place, "true"), **places[step]))
        await wait_for_async((place / "begun").exists)
        assert await runner.status(place) is JobState.RUNNING
        started = time.monotonic()
        await runner.cancel(place)
        took = time.monotonic() - started
        assert left_behind(place) == []
        assert (await runner.wait(place)).outcome is Outcome.CANCELLED
        if took < 1:
            break
    assert took < 1


async def test_cancel_at_once(runner: Runner, folder: Path) -> None:
    await runner.submit(folder, job(folder, "sleep", "60"))
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
