"""Jobs that the contract tests of runners submit."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent.runners.base import BuildSpec, JobResult, JobSpec, Runner
from trimtab_components.metric_definition import USES
from trimtab_components.schema import Metric


def left_behind(folder: Path) -> list[str]:
    """Return the command lines of processes whose environment names the job and which do not end by themselves.

    The job's keeper has some moments to end after it has left the result.
    """
    with suppress(AssertionError):
        wait_for(lambda: not _processes_of(folder))
    return _processes_of(folder)


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
    made |= {"path": "", "file": "", "unaffected": kind in USES}
    made |= {"tool": "", "output_field": "", "of": "", "query": "", "url": "", "delay": 0.0, "process": "", "unit": ""}
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


def build(folder: Path, script: str, **fields: Any) -> BuildSpec:
    entry = folder.parent / "builds" / "key"
    made = BuildSpec(str(entry), [["sh", "-c", script]], {"PATH": os.environ["PATH"]}, PATIENCE, 1 << 30)
    return replace(made, **fields)
