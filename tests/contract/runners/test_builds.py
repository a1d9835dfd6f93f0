"""Builds before the application in every runner."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import build, job, run
from trimtab_agent.runners.base import Outcome, Runner


@pytest.mark.without_ray
async def test_build_is_not_part_of_the_time(runner: Runner, folder: Path) -> None:
    made = build(folder, "sleep 2; echo built > out")
    result = await run(runner, folder, job(folder, "cat", f"{made.entry}/out", build=made))
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert result.build_seconds is not None
    assert result.build_seconds > 2 > result.elapsed
    shutil.rmtree(folder)
    (folder / "work").mkdir(parents=True)
    again = await run(runner, folder, job(folder, "cat", f"{made.entry}/out", build=made))
    assert (again.outcome, again.build_seconds) == (Outcome.COMPLETED, None)


@pytest.mark.without_ray
@pytest.mark.parametrize(
    ("script", "fields", "words"),
    [
        ("for i in $(seq 99); do echo line $i; done; exit 2", {}, "build: sh ended with exit code 2\nline 88"),
        ("sleep 1000", {"timeout": 0.3}, "build: did not end within 0.3 s"),
    ],
)
async def test_build_that_fails(runner: Runner, folder: Path, script: str, fields: dict[str, Any], words: str) -> None:
    result = await run(runner, folder, job(folder, "true", build=build(folder, script, **fields)))
    assert result.outcome is Outcome.INFEASIBLE
    assert words in result.reason
    assert len(result.reason) < 2000


@pytest.mark.without_ray
async def test_build_that_fails_by_the_machines_fault(runner: Runner, folder: Path) -> None:
    made = build(folder, "echo no sources; exit 75")
    result = await run(runner, folder, job(folder, "true", build=made, failed_exit_codes=[75]))
    assert result.outcome is Outcome.FAILED
    assert "build: sh ended with exit code 75\nno sources" in result.reason
