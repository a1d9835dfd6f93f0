"""The Slurm runner, alone and in an agent, against a real Slurm. What it has in common with every runner is tested in
tests/contract/test_runners.py."""

import asyncio
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, at_best, processes_of, run_agent_command, wait_until
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_daemon_faults import settled_once
from tests.factories.slurm import Slurm
from trimtab_agent.runners import slurm as slurm_runner
from trimtab_agent.runners.base import JobResult, JobSpec, JobState, stored_result
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.batch import SHORTEST_PAUSE
from trimtab_agent.runners.slurm import SlurmRunner
from trimtab_agent.runners.slurm_states import STATES, refusal

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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where gated trials note their runs and look for their gates."""
    (tmp_path / "runs").touch()
    return tmp_path


@pytest.fixture
def agent(tmp_path: Path, place: Path, far_side: FarSide, slurm: Slurm) -> Iterator[AgentProcess]:
    """An agent that has not been started yet; it is, with `start("--runner", "slurm")`."""
    made = gated_agent(place, far_side)
    yield made
    made.clear_away()


def gated_agent(place: Path, far_side: FarSide) -> AgentProcess:
    """An agent with the component above."""
    made = AgentProcess(place, far_side.port)
    (place / "components").mkdir()
    (place / "components" / "gated.yaml").write_text(GATED.replace("PLACE", str(place)))
    return made


@pytest.fixture
def runner(slurm: Slurm) -> Iterator[SlurmRunner]:
    made = SlurmRunner()
    yield made
    made.close()


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
        timeout=60.0,
        params={},
        python=sys.executable,
        **given,  # type: ignore[arg-type]
    )
    return folder, spec


async def ended(runner: SlurmRunner, folder: Path, seconds: float = 60.0) -> JobResult:
    return await asyncio.wait_for(runner.wait(folder), seconds)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  the condition is in the file system
            await asyncio.sleep(0.02)


def jobs_of(slurm: Slurm, folder: Path) -> list[str]:
    """The states of the jobs that a folder has had."""
    return [state for state, _, place in slurm.jobs().values() if Path(place).is_relative_to(folder)]


# -- what Slurm says


def test_every_state_has_a_meaning(slurm: Slurm) -> None:
    """Of this Slurm's; the table has later ones besides."""
    told = slurm.run("sh", "-c", "squeue --states=none-such 2>&1")
    listed = re.search(r"Valid job states include: (.*)", told)
    assert listed, told
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
def test_whose_fault_a_state_is(state: str, outcome: Ended | None) -> None:
    assert STATES[state].outcome is outcome


def test_slurmctld_being_away_is_no_refusal(slurm: Slurm) -> None:
    told: list[str] = []
    slurm.restart_controller(lambda: told.append(slurm.run("sh", "-c", "squeue 2>&1; sbatch --wrap=true 2>&1")))
    assert "Unable to contact slurm controller" in told[0]
    assert refusal(told[0]) == "passing"
    wait_until(lambda: "PARTITION" in slurm.run("sinfo"))


# -- one look for all


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
    await until(lambda: len((place / "calls").read_text().splitlines()) >= 2)
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
    (place / "odd.sh").write_text(f"#!/bin/sh\n{name}\n#SBATCH hetjob\n{name}\nsleep 60\n")
    slurm.run("sbatch", f"--chdir={place}", "--output=/dev/null", str(place / "odd.sh"))
    assert "+1 trimtab-odd" in slurm.run("squeue", "--noheader", "--format=%i %j")
    folder, spec = job(place, "a", "sh", "-c", f"until [ -e {place}/gate ]; do sleep 0.05; done")
    await runner.submit(folder, spec)
    assert await asyncio.wait_for(runner.status(folder), 60) in (JobState.QUEUED, JobState.RUNNING)
    (place / "gate").touch()
    assert (await ended(runner, folder)).outcome is Ended.COMPLETED


# -- submitting


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
    await until(lambda: jobs_of(slurm, folder) == ["COMPLETED", "COMPLETED"])
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
        'echo "$SLURM_JOB_NUM_NODES" > told; env > env',
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
    assert (folder / "work" / "told").read_text() == "2\n"
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
        ({"scheduler_options": ["--arr", "1-3"]}, "NotAccepted", "'--arr' is the runner's own; allowed: any option"),
        ({"directives": ["#BB a\ntouch x"]}, "UnsuitableValue", "is more than one line"),
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
        "the job can never start: the job asks for more or fewer nodes than the partition allows (PartitionNodeLimit)",
    )
    runner.close()
    await until(lambda: jobs_of(slurm, folder) == ["CANCELLED"])


# -- what happens to jobs


async def test_requeued_job_begins_anew(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    """In a work folder as it was at first, with one result."""
    script = f"cat given; mkdir new && echo run >> {place}/runs && until [ -e {place}/gate ]; do sleep 0.05; done"
    stream = [{"source": "stdout", "pattern": "m=(?P<m>.)"}]
    folder, spec = job(place, "a", "sh", "-c", f"{script}; echo m=1", stream=stream, run=10_001)
    (folder / "work" / "given").write_text("as it was\n")
    shown = runner.script(folder, spec)
    await runner.submit(folder, spec)
    assert runner.script(folder, spec) == shown == (folder / "job.sh").read_text()
    waiting = asyncio.create_task(runner.wait(folder))
    await until(lambda: (place / "runs").exists() and (place / "runs").read_text() == "run\n")
    assert slurm.run("sh", "-c", f"scontrol requeue {(folder / 'job').read_text()} 2>&1") == ""
    await until(lambda: (place / "runs").read_text() == "run\nrun\n", 120)
    assert not waiting.done()
    assert json.loads((folder / "owner").read_text())[1] == 1
    (place / "gate").touch()
    result = await asyncio.wait_for(waiting, 60)
    assert result.outcome is Ended.COMPLETED, result.reason
    assert (folder / "log").read_text().count("as it was") == 1
    # What it measured is told as another run's.
    assert [json.loads(line)["run"] for line in (folder / "measurements").read_text().splitlines()] == [10_002]


async def test_a_job_whose_folder_is_gone_ends(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sh", "-c", f"touch {place}/begun; sleep 60")
    await runner.submit(folder, spec)
    await until((place / "begun").exists)
    folder.rename(folder.with_name("gone"))
    await until(lambda: jobs_of(slurm, folder) == ["FAILED"])


async def test_job_requeued_and_held(
    runner: SlurmRunner, place: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_runner, "HOPELESS_TIME", 1.0)
    folder, spec = job(place, "a", "sleep", "60")
    await runner.submit(folder, spec)
    await runner.started(folder)
    slurm.run("scontrol", "requeuehold", (folder / "job").read_text())
    result = await ended(runner, folder)
    assert result.outcome is Ended.FAILED
    assert result.reason.startswith("the job can never start: the job was requeued and is held")
    await until(lambda: jobs_of(slurm, folder) == ["CANCELLED"])


async def test_node_drained_while_the_job_runs(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sh", "-c", f"until [ -e {place}/gate ]; do sleep 0.05; done")
    await runner.submit(folder, spec)
    node = await asyncio.wait_for(runner.started(folder), 60)
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    (place / "gate").touch()
    result = await ended(runner, folder)
    assert (result.outcome, result.node) == (Ended.COMPLETED, node)


async def test_node_down_while_the_job_runs(place: Path, slurm: Slurm) -> None:
    runner = SlurmRunner(["--no-requeue"])
    folder, spec = job(place, "a", "sleep", "60")
    await runner.submit(folder, spec)
    node = await asyncio.wait_for(runner.started(folder), 60)
    waiting = asyncio.create_task(runner.wait(folder))
    slurm.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    result = await asyncio.wait_for(waiting, 60)
    runner.close()
    assert (result.outcome, result.reason) == (Ended.FAILED, "a node of the job failed")


async def test_job_cancelled_by_somebody_else(runner: SlurmRunner, place: Path, slurm: Slurm) -> None:
    folder, spec = job(place, "a", "sleep", "60")
    await runner.submit(folder, spec)
    await runner.started(folder)
    slurm.run("scancel", (folder / "job").read_text())
    result = await ended(runner, folder)
    assert (result.outcome, result.reason) == (Ended.FAILED, "the job was cancelled in Slurm, not by the service")
    # the agent may run it again
    assert await runner.status(folder) is JobState.ABSENT


@pytest.mark.parametrize("pending", [False, True])
async def test_cancelled_job_is_gone_within_two_seconds(
    runner: SlurmRunner, place: Path, slurm: Slurm, pending: bool
) -> None:
    options = ["--begin=now+1hour"] if pending else []
    script = f"touch {place}/begun; trap '' TERM; setsid sleep 60 & sleep 60"

    def is_there(folder: Path) -> bool:
        return jobs_of(slurm, folder) == ["PENDING"] if pending else (place / "begun").exists()

    def is_cancelled(folder: Path) -> bool:
        return jobs_of(slurm, folder) == ["CANCELLED"]

    # once, or where the machine was busy with something else up to three times
    for name in "abc":
        (place / "begun").unlink(missing_ok=True)
        folder, spec = job(place, name, "sh", "-c", script, scheduler_options=options)
        await runner.submit(folder, spec)
        await until(partial(is_there, folder))
        assert await runner.status(folder) is (JobState.QUEUED if pending else JobState.RUNNING)
        started = time.monotonic()
        await runner.cancel(folder)
        result = await ended(runner, folder)
        took = time.monotonic() - started
        assert result.outcome is Ended.CANCELLED
        assert (result.elapsed > 0) is not pending
        await until(partial(is_cancelled, folder))
        if took < 2:
            break
    assert took < 2


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
    assert (result.outcome, result.reason) == (Ended.FAILED, "the job is gone from Slurm without a result")


# -- in an agent


def test_agent_killed_with_jobs_pending_running_and_done(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes[2:])}", "state=drain", "reason=test")
    options = ("--runner", "slurm", "--slots", "3", "--slurm-option=--exclusive")
    agent.start(*options)
    done, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_until(lambda: sorted((place / "runs").read_text().split()) == ["1.0", "2.0"])
    pending = far_side.offer("gated", application="gate", x=3.0)
    wait_until(lambda: sorted(jobs_of(slurm, agent.state)) == ["PENDING", "RUNNING", "RUNNING"])
    agent.kill()
    # its node must not be free for the pending one
    (folder,) = (lease for lease in agent.state.glob("leases/*") if '"x": 1.0' in (lease / "lease.json").read_text())
    node = json.loads((folder / "owner").read_text())[2]
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    (place / "gate1.0").touch()
    wait_until((folder / "result.json").exists)
    agent.start(*options)
    assert far_side.outcome(done).metrics["value"] == 1.0
    wait_until(lambda: sorted(jobs_of(slurm, agent.state)) == ["COMPLETED", "PENDING", "RUNNING"])
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=resume")
    for x in (2.0, 3.0):
        (place / f"gate{x}").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    assert far_side.outcome(pending).metrics["value"] == 3.0
    for lease in (done, running, pending):
        settled_once(far_side, lease)
    assert sorted((place / "runs").read_text().split()) == ["1.0", "2.0", "3.0"]
    assert len(jobs_of(slurm, agent.state)) == 3


def test_agent_killed_while_it_submits(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    """sbatch has submitted the job, but nobody hears of it."""
    programs("sbatch", f'$REAL "$@"; touch {place}/submitted; sleep 3')
    agent.start("--runner", "slurm")
    lease = far_side.offer("gated", application="gate", x=4.0)
    wait_until((place / "submitted").exists)
    agent.kill()
    assert not list(agent.state.glob("leases/*/job"))
    agent.start("--runner", "slurm")
    (place / "gate4.0").touch()
    assert far_side.outcome(lease).metrics["value"] == 4.0
    settled_once(far_side, lease)
    assert (place / "runs").read_text() == "4.0\n"
    assert len(jobs_of(slurm, agent.state)) == 1


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.5, 1.0])
def test_agent_killed_at_any_moment(agent: AgentProcess, far_side: FarSide, slurm: Slurm, seconds: float) -> None:
    options = ("--runner", "slurm", "--slots", "4")
    agent.start(*options)
    far_side.wait_for(lambda: far_side.registrations)
    leases = []
    for number in range(3):
        leases += [far_side.offer("gated", x=float(number)), far_side.offer("gated", x=float(number) + 0.5)]
        time.sleep(seconds)
        agent.kill()
        agent.start(*options)
    for number, lease in enumerate(leases):
        settled = far_side.outcome(lease, 120)
        assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled
        assert settled.metrics["value"] == number / 2
        settled_once(far_side, lease)
    agent.wait_until_ready()
    agent.stop()
    # results are there some moments before Slurm has ended their jobs
    wait_until(lambda: not processes_of(agent.state))
    wait_until(lambda: set(jobs_of(slurm, agent.state)) <= {"COMPLETED", "CANCELLED"})
    assert jobs_of(slurm, agent.state)


def test_slurmctld_restarted_while_trials_run_end_and_come(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    agent.start("--runner", "slurm", "--slots", "3")
    ending, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_until(lambda: sorted((place / "runs").read_text().split()) == ["1.0", "2.0"])
    coming = []

    def while_it_is_away() -> None:
        (place / "gate1.0").touch()
        # the result is there, whatever Slurm says of the job
        assert far_side.outcome(ending).metrics["value"] == 1.0
        coming.append(far_side.offer("gated", x=3.0))
        wait_until(lambda: "cannot be submitted now" in agent.log, 120)

    slurm.restart_controller(while_it_is_away)
    assert far_side.outcome(coming[0], 120).metrics["value"] == 3.0
    assert running not in far_side.settled
    (place / "gate2.0").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    for lease in (ending, running, *coming):
        settled_once(far_side, lease)


def test_cancelled_by_the_service(agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm) -> None:
    nodes = []
    far_side.before = lambda method, request, context: nodes.append(request.node) if method == "ReportStarted" else None
    agent.start("--runner", "slurm")

    def cancel() -> float:
        lease = far_side.offer("gated", application="gate", x=1.0)
        far_side.wait_for(lambda: far_side.elapsed.get(lease, 0.0) > 0.3)
        told = time.monotonic()
        far_side.to_cancel[lease] = "pruned"
        settled = far_side.outcome(lease)
        took = time.monotonic() - told
        assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_CANCELLED, "pruned")
        assert settled.elapsed.ToNanoseconds() / 1e9 >= 0.3
        return took

    assert at_best(cancel, far_side.heartbeat + 2)
    assert len(nodes) == len(far_side.settled)
    assert set(nodes) <= set(slurm.nodes)
    wait_until(lambda: set(jobs_of(slurm, agent.state)) == {"CANCELLED"})


def test_sigterm_gives_jobs_back(agent: AgentProcess, far_side: FarSide, slurm: Slurm) -> None:
    agent.start("--runner", "slurm", "--slots", "2")
    leases = [far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0)]
    far_side.wait_for(lambda: all(far_side.started.get(lease) for lease in leases))
    agent.stop()
    for lease in leases:
        assert far_side.settled[lease].outcome == Outcome.OUTCOME_RELEASED
    wait_until(lambda: jobs_of(slurm, agent.state) == ["CANCELLED"] * 2)
    assert list((agent.state / "leases").iterdir()) == []


def test_unknown_partition_is_told_and_the_study_goes_on(agent: AgentProcess, far_side: FarSide) -> None:
    agent.start("--runner", "slurm", "--slurm-option=--partition=none")
    settled = far_side.outcome(far_side.offer("gated"))
    assert settled.outcome == Outcome.OUTCOME_FAILED
    assert "Invalid partition name specified" in settled.reason
    agent.stop()
    agent.start("--runner", "slurm", "--slurm-option=--partition=short")
    assert far_side.outcome(far_side.offer("gated")).outcome == Outcome.OUTCOME_COMPLETED


def test_the_agent_stays_small(agent: AgentProcess, far_side: FarSide) -> None:
    agent.start("--runner", "slurm")
    far_side.outcome(far_side.offer("gated"))
    assert agent.process
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 60 * 1024


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--slurm-option=partition=x"], "--slurm-option 'partition=x' is not an option of sbatch in its long form"),
        (["--slurm-option=--array=1-2"], "--slurm-option '--array=1-2' is the runner's own; allowed: any option"),
        (["--runner", "local", "--slurm-option=--exclusive"], "has a meaning only with --runner slurm"),
        (["--runner", "pbs"], "invalid choice: 'pbs' (choose from 'local', 'slurm', 'ray')"),
    ],
)
def test_wrong_options(place: Path, options: list[str], words: str) -> None:
    (place / "c.yaml").write_text(GATED)
    done = run_agent_command(["try", "gated", "--components", str(place), "--runner", "slurm", *options])
    assert done.returncode == 2
    assert words in done.stderr


def test_slurm_missing_is_told_at_the_start(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    (place / "token").write_text("t")
    (place / "c.yaml").write_text(GATED)
    options = ["--server", "127.0.0.1:1", "--token-file", str(place / "token"), "--components", str(place)]
    done = run_agent_command(["run", *options, "--state-dir", str(place / "state"), "--runner", "slurm"])
    assert done.returncode == 2
    assert "not found in PATH: sbatch, squeue, scancel, scontrol" in done.stderr


def test_a_users_own_batch_script(place: Path, slurm: Slurm) -> None:
    """Its options count, it runs in the job, and the parameters reach it."""
    (place / "c.yaml").write_text(GATED.replace("  main:", "  own: {script: run.sh}\n  main:"))
    script = ["#!/bin/bash", "#SBATCH --nodes=2", "#SBATCH --output=elsewhere", 'echo "value=$SLURM_JOB_NUM_NODES$1"']
    (place / "run.sh").write_text("\n".join(script))
    options = ["--components", str(place), "--state-dir", str(place / "state"), "--runner", "slurm"]
    done = run_agent_command(["try", "gated", *options, "--set", "x=2.5"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "metric value = 22.5" in done.stdout
    assert "scheduler: #SBATCH --nodes=2" in done.stdout


def test_try(place: Path, slurm: Slurm) -> None:
    (place / "c.yaml").write_text(GATED)
    options = ["--components", str(place), "--state-dir", str(place / "state"), "--runner", "slurm"]
    done = run_agent_command(["try", "gated", *options, "--set", "x=2.5"])
    assert done.returncode == 0, done.stderr
    assert "metric value = 2.5" in done.stdout
    done = run_agent_command(["try", "gated", *options, "--slurm-option=--partition=none"])
    assert done.returncode == 1
    assert "Invalid partition name specified" in done.stdout
