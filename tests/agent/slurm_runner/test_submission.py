"""Submission of jobs to a real Slurm."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.slurm_runner.jobs import ended, job, jobs_of
from tests.factories.patience import wait_for_async
from tests.factories.slurm import Slurm
from trimtab_agent.runners import slurm as slurm_runner
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.base import stored_result
from trimtab_agent.runners.slurm import SlurmRunner


async def test_a_submission_whose_answer_is_lost_is_not_made_twice(
    runner: SlurmRunner, place: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    programs(
        "sbatch",
        f'[ -e {place}/lost ] && exec $REAL "$@"; touch {place}/lost; $REAL "$@"\n'
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
    )
    folder, spec = job(place, "a", "sleep", "4")
    await runner.submit(folder, spec)
    assert (await ended(runner, folder)).outcome is Ended.COMPLETED
    assert len(jobs_of(slurm, folder)) == 1


async def test_a_second_job_of_a_trial_does_nothing(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    """Should a lost submission arrive after all."""
    folder, spec = job(place, "a", "sh", "-c", f"echo run >> {place}/runs; sleep 2")
    await runner.submit(folder, spec)
    slurm.run("sbatch", f"--chdir={folder}", "--job-name=trimtab-a", "--output=/dev/null", str(folder / "job.sh"))
    result = await ended(runner, folder)
    assert result.outcome is Ended.COMPLETED
    assert result.elapsed >= 2
    await wait_for_async(lambda: jobs_of(slurm, folder) == ["COMPLETED", "COMPLETED"])
    assert (place / "runs").read_text() == "run\n"
    assert stored_result(folder) == result


async def test_script_options_and_environment(place: Path, slurm: Slurm) -> None:
    """Options of the administrator, of the trial's script and of the component, the later over the earlier; values that
    a shell would do something with."""
    runner = SlurmRunner(["--nodes=3", '--comment=it\'s "odd" \\ #1', "--exclusive"])
    folder, spec = job(
        place,
        "it's 100%A of a $(touch pwned)",
        "sh",
        "-c",
        'echo "$SLURM_JOB_NUM_NODES" > reported; env > env',
        env={"OWN": "$(touch pwned) 'quoted'"},
        own_env=["OWN"],
        scheduler_options=["--nodes", "2"],
        directives=["#SBATCH --nodes=1", "#BB pool=$(touch pwned) `touch pwned`"],
    )
    await runner.submit(folder, spec)
    number = (folder / "job").read_text()
    shown = slurm.run("scontrol", "show", "job", number)
    assert (await ended(runner, folder)).outcome is Ended.COMPLETED
    runner.close()
    assert (folder / "work" / "reported").read_text() == "2\n"
    variables = (folder / "work" / "env").read_text().splitlines()
    assert "OWN=$(touch pwned) 'quoted'" in variables
    assert f"SLURM_JOB_ID={number}" in variables
    assert 'Comment=it\'s "odd" \\ #1' in shown
    assert "OverSubscribe=NO" in shown
    assert not (folder / "pwned").exists()
    assert not (folder / "work" / "pwned").exists()
    lines = (folder / "job.sh").read_text().splitlines()
    assert lines[0] == "#!/bin/sh"
    assert "#BB pool=$(touch pwned) `touch pwned`" in lines


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"scheduler_options": ["--partition=none"]}, "NotAccepted", "Invalid partition name specified"),
        ({"scheduler_options": ["--no-such-option"]}, "NotAccepted", "unrecognized option '--no-such-option'"),
        ({"scheduler_options": ["--mem=99T"]}, "NotAccepted", "Requested node configuration is not available"),
        (
            {"scheduler_options": ["--mem=99T"], "asks": True},
            "UnsuitableValue",
            "Requested node configuration is not available",
        ),
        (
            {"scheduler_options": ["--arr", "1-3"]},
            "NotAccepted",
            "'--arr' is reserved for the runner. Use any option",
        ),
        ({"directives": ["#BB a\ntouch x"]}, "UnsuitableValue", "has more than one line"),
        ({"directives": ["touch x"]}, "NotAccepted", "does not start with '#'"),
    ],
)
async def test_jobs_that_are_refused(
    runner: SlurmRunner, place: Path, slurm: Slurm, fields: dict[str, object], error: str, words: str
) -> None:
    folder, spec = job(place, "a", "true", **fields)
    with pytest.raises(Exception, match=re.escape(words)) as caught:
        await runner.submit(folder, spec)
    assert type(caught.value).__name__ == f"{error}Error"
    assert [state for state in jobs_of(slurm, folder) if state != "FAILED"] == []


@pytest.mark.parametrize(
    ("options", "trial", "outcome"), [(["--nodes=9"], [], Ended.FAILED), ([], ["--nodes=9"], Ended.INFEASIBLE)]
)
async def test_a_job_that_can_never_start(
    place: Path,
    slurm: Slurm,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    trial: list[str],
    outcome: Ended,
) -> None:
    """Slurm takes it and lets it wait for ever."""
    monkeypatch.setattr(slurm_runner, "HOPELESS_TIME", 1.0)
    runner = SlurmRunner(options)
    folder, spec = job(place, "a", "true", scheduler_options=trial, asks=bool(trial))
    await runner.submit(folder, spec)
    result = await ended(runner, folder)
    assert (result.outcome, result.reason) == (
        outcome,
        "the job can never start: the job requests more or fewer nodes than the partition allows (PartitionNodeLimit)",
    )
    runner.close()
    await wait_for_async(lambda: jobs_of(slurm, folder) == ["CANCELLED"])
