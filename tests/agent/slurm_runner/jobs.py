"""Jobs and agents for the tests of the runners for Slurm and Ray."""

import asyncio
import sys
from pathlib import Path

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.factories.patience import PATIENCE
from tests.factories.slurm import Slurm
from trimtab_agent.runners.base import JobResult, JobSpec
from trimtab_agent.runners.slurm import SlurmRunner

# `gate` runs until the test lets it end, and notes each of its runs
GATED = """
name: gated
parameters:
  x: {type: float, min: 0, max: 10, default: 1, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'echo "value=$0"']}
  gate:
    command: [sh, -c, 'echo $0 >> PLACE/runs; until [ -e PLACE/gate$0 ]; do sleep 0.05; done; echo value=$0']
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


def gated_agent(place: Path, far_side: FarSide) -> AgentProcess:
    """An agent with the component above."""
    made = AgentProcess(place, far_side.port)
    (place / "components").mkdir()
    (place / "components" / "gated.yaml").write_text(GATED.replace("PLACE", str(place)))
    return made


def job(place: Path, name: str, *command: str, **fields: object) -> tuple[Path, JobSpec]:
    """A job's folder, and its specification."""
    folder = place / "jobs" / name
    (folder / "work").mkdir(parents=True)
    given = {"metrics": [{"name": "seconds", "kind": "wall_time"}], "required": ["seconds"], "env": {}, **fields}
    spec = JobSpec(
        name=name,
        work=str(folder / "work"),
        cwd=str(folder / "work"),
        command=command,
        base_env={},
        timeout=PATIENCE,
        params={},
        python=sys.executable,
        **given,  # type: ignore[arg-type]
    )
    return folder, spec


async def ended(runner: SlurmRunner, folder: Path) -> JobResult:
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


def jobs_of(slurm: Slurm, folder: Path) -> list[str]:
    """The states of the jobs that a folder has had."""
    return [state for state, _, place in slurm.jobs().values() if Path(place).is_relative_to(folder)]
