"""The states of jobs that Slurm reports, and how often the runner asks for them."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.slurm_runner.jobs import ended, job
from tests.factories.patience import PATIENCE, wait_for, wait_for_async
from tests.factories.slurm import Slurm
from trimtab_agent.runners.base import JobState, stored_result
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.batch import SHORTEST_PAUSE
from trimtab_agent.runners.slurm import SlurmRunner
from trimtab_agent.runners.slurm_states import STATES, refusal


def test_every_state_has_a_meaning(slurm: Slurm) -> None:
    """The states of the installed Slurm. The table also has later ones."""
    reported = slurm.run("sh", "-c", "squeue --states=none-such 2>&1")
    listed = re.search(r"Valid job states include: (.*)", reported)
    assert listed, reported
    known = {state.strip().upper() for state in listed.group(1).replace(" and ", ",").split(",") if state.strip()}
    assert len(known) > 15
    assert known <= set(STATES)
    for state, meaning in STATES.items():
        over = meaning.state is JobState.ENDED
        assert over == (meaning.outcome is not None) == bool(meaning.reason), state
        assert meaning.outcome in (None, Ended.FAILED, Ended.INFEASIBLE), state


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("TIMEOUT", Ended.INFEASIBLE),
        ("OUT_OF_MEMORY", Ended.INFEASIBLE),
        ("DEADLINE", Ended.INFEASIBLE),
        ("NODE_FAIL", Ended.FAILED),
        ("PREEMPTED", Ended.FAILED),
        ("BOOT_FAIL", Ended.FAILED),
        ("CANCELLED", Ended.FAILED),
        ("FAILED", Ended.FAILED),
        ("REQUEUED", None),
        ("COMPLETING", None),
        ("SUSPENDED", None),
    ],
)
def test_each_state_is_blamed_on_the_machine_or_the_configuration(state: str, outcome: Ended | None) -> None:
    assert STATES[state].outcome is outcome


def test_slurmctld_being_away_is_no_refusal(slurm: Slurm) -> None:
    reported: list[str] = []
    slurm.restart_controller(lambda: reported.append(slurm.run("sh", "-c", "squeue 2>&1; sbatch --wrap=true 2>&1")))
    assert "Unable to contact slurm controller" in reported[0]
    assert refusal(reported[0]) == "passing"
    wait_for(lambda: "PARTITION" in slurm.run("sinfo"))


async def test_one_squeue_for_all_jobs(
    runner: SlurmRunner, place: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    for program in ("squeue", "scontrol", "sacct"):
        programs(program, f'echo "{program} $*" >> {place}/calls; exec $REAL "$@"')
    gate = 'until [ -e "$0" ]; do sleep 0.1; done'
    jobs = [job(place, str(number), "sh", "-c", gate, str(place / "gate")) for number in range(12)]
    started = time.monotonic()
    await asyncio.gather(*(runner.submit(folder, spec) for folder, spec in jobs))
    results = asyncio.gather(*(ended(runner, folder) for folder, _ in jobs))
    await asyncio.sleep(3)
    await wait_for_async(lambda: len((place / "calls").read_text().splitlines()) >= 2)
    (place / "gate").touch()
    assert {result.outcome for result in await results} == {Ended.COMPLETED}
    seconds = time.monotonic() - started
    calls = (place / "calls").read_text().splitlines()
    assert all(call.startswith("squeue ") and "--job" not in call for call in calls)
    # never two at a time, and fewer as time goes by
    assert 2 <= len(calls) <= seconds / SHORTEST_PAUSE
    assert {stored.node for folder, _ in jobs if (stored := stored_result(folder))} <= set(slurm.nodes)


async def test_heterogeneous_jobs_are_passed_over(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    """Somebody else's, of this user, that is called as trials are: its parts are named otherwise than jobs."""
    name = "#SBATCH --ntasks=1 --job-name=trimtab-odd"
    (place / "odd.sh").write_text(f"#!/bin/sh\n{name}\n#SBATCH hetjob\n{name}\nsleep 1000\n")
    slurm.run("sbatch", f"--chdir={place}", "--output=/dev/null", str(place / "odd.sh"))
    assert "+1 trimtab-odd" in slurm.run("squeue", "--noheader", "--format=%i %j")
    folder, spec = job(place, "a", "sh", "-c", f"until [ -e {place}/gate ]; do sleep 0.05; done")
    await runner.submit(folder, spec)
    assert await asyncio.wait_for(runner.status(folder), PATIENCE) in (JobState.QUEUED, JobState.RUNNING)
    (place / "gate").touch()
    assert (await ended(runner, folder)).outcome is Ended.COMPLETED
