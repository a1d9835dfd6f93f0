"""Jobs that the contract tests of runners submit."""

import asyncio
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.factories.patience import PATIENCE
from trimtab_agent.runners.base import BuildSpec, JobResult, JobSpec, Runner
from trimtab_components.schema import Metric


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes whose environment names the job. The job's keeper has some moments to end after it
    has left the result."""
    # less than what a test has them sleep
    give_up = time.monotonic() + 20.0
    while (found := _processes_of(folder)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return found


def _processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def metric(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "kind": kind, "source": "stdout", "pattern": "", "take": "last"}
    made |= {"path": "", "file": ""}
    made |= {"tool": "", "output_field": "", "of": "", "query": "", "url": "", "delay": 0.0}
    assert set(made) | {"function", "timeout"} == set(Metric.__dataclass_fields__)
    return {**made, "function": "", "timeout": PATIENCE, **fields}


SECONDS = metric("seconds", "wall_time")


def job(folder: Path, *command: str, **fields: Any) -> JobSpec:
    environment = {"PATH": os.environ["PATH"]}
    spec = JobSpec(
        name="study/1",
        work=str(folder / "work"),
        cwd=str(folder / "work"),
        command=command,
        env={**environment, "GIVEN": "a b"},
        own_env=["GIVEN"],
        base_env=environment,
        timeout=PATIENCE,
        metrics=[SECONDS],
        required=["seconds"],
        params={"p": 1},
        python=sys.executable,
        grace=0.3,
    )
    return replace(spec, **fields)


def shell(folder: Path, script: str, **fields: Any) -> JobSpec:
    return job(folder, "sh", "-c", script, **fields)


async def run(runner: Runner, folder: Path, spec: JobSpec) -> JobResult:
    await runner.submit(folder, spec)
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


# How often a time is taken where it is promised: the quickest counts, for what else a machine does can only add to it.
ATTEMPTS = 3


def another(folder: Path, attempt: int) -> Path:
    """The folder of one more job of the test's."""
    made = folder / str(attempt)
    (made / "work").mkdir(parents=True)
    return made


def build(folder: Path, script: str, **fields: Any) -> BuildSpec:
    entry = folder.parent / "builds" / "key"
    made = BuildSpec(str(entry), [["sh", "-c", script]], {"PATH": os.environ["PATH"]}, PATIENCE, 1 << 30)
    return replace(made, **fields)
