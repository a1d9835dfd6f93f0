"""Where the Slurm runner's jobs run, and job arrays, against a real Slurm."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.far_side import FarSide, Outcome
from tests.agent.slurm_runner.jobs import ended, job, jobs_of
from tests.agent.test_daemon_faults import settled_once
from tests.factories.patience import wait_for, wait_for_async
from tests.factories.slurm import Slurm
from trimtab_agent.runners import slurm_spread, slurm_states, slurm_submission
from trimtab_agent.runners.base import JobResult, JobSpec, JobState
from trimtab_agent.runners.base import Outcome as Ended
from trimtab_agent.runners.slurm import SlurmRunner
from trimtab_agent.runners.slurm_spread import expand


def gated(place: Path, name: str, gate: str = "gate", **fields: object) -> tuple[Path, JobSpec]:
    """A job that runs until its gate is there."""
    return job(place, name, "sh", "-c", f"until [ -e {place}/{gate} ]; do sleep 0.05; done", **fields)


async def submit(runner: SlurmRunner, jobs: list[tuple[Path, JobSpec]]) -> "asyncio.Future[list[JobResult]]":
    """Submit jobs together; their results."""
    await asyncio.gather(*(runner.submit(folder, spec) for folder, spec in jobs))
    return asyncio.gather(*(ended(runner, folder) for folder, _ in jobs))


def numbers(jobs: list[tuple[Path, JobSpec]]) -> list[str]:
    return [(folder / "job").read_text() for folder, _ in jobs]


# -- job arrays


async def test_trials_that_come_together_are_one_array(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    """Jobs with equal requests share one submission. Each is cancelled, requeued, and ends by itself."""
    programs("sbatch", f'echo "$*" >> {tmp_path}/calls; exec $REAL "$@"')
    same = [gated(tmp_path, str(number), gate=f"gate{number}") for number in range(5)]
    other = job(tmp_path, "other", "true", scheduler_options=["--nodes=2"])
    results = await submit(runner, [*same, other])
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sorted("--array" in call for call in calls) == [False, True]
    array, _, _ = numbers(same)[0].partition("_")
    assert numbers(same) == [f"{array}_{index}" for index in range(5)]
    folders = [folder for folder, _ in same]
    await wait_for_async(lambda: all((folder / "owner").exists() for folder in folders))
    await asyncio.gather(*(runner.cancel(folder) for folder in folders[:2]))
    slurm.run("scontrol", "requeue", f"{array}_2")
    for number in (2, 3, 4):
        (tmp_path / f"gate{number}").touch()
    outcomes = [result.outcome for result in await results]
    assert outcomes == [Ended.CANCELLED] * 2 + [Ended.COMPLETED] * 4
    assert [(folder / "log").exists() for folder in folders] == [True] * 5
    await wait_for_async(lambda: set(jobs_of(slurm, tmp_path)) == {"COMPLETED", "CANCELLED"})


async def test_another_runner_finds_the_tasks_of_an_array(runner: SlurmRunner, tmp_path: Path, slurm: Slurm) -> None:
    """Pending, running and done."""
    jobs = [gated(tmp_path, str(number), gate=f"gate{number}", exclusive=True) for number in range(6)]
    await asyncio.gather(*(runner.submit(folder, spec) for folder, spec in jobs))
    folders = [folder for folder, _ in jobs]
    # four at a time, before the first of them leaves its node to another
    await wait_for_async(lambda: sum((folder / "owner").exists() for folder in folders) == 4)
    (tmp_path / "gate0").touch()
    await wait_for_async((folders[0] / "result.json").exists)
    await wait_for_async(lambda: sum((folder / "owner").exists() for folder in folders) == 5)
    runner.close()
    for folder in folders:
        (folder / "job").unlink()  # sbatch's answer was not noted
    again = SlurmRunner()
    states = [await again.status(folder) for folder in folders]
    assert states[0] is JobState.ENDED
    assert sorted(states[1:]) == [JobState.QUEUED] + [JobState.RUNNING] * 4
    pending = folders[states.index(JobState.QUEUED)]
    await again.cancel(pending)
    for number in range(6):
        (tmp_path / f"gate{number}").touch()
    results = [await ended(again, folder) for folder in folders]
    again.close()
    assert [result.outcome for folder, result in zip(folders, results, strict=True) if folder != pending] == [
        Ended.COMPLETED
    ] * 5
    assert results[folders.index(pending)].outcome is Ended.CANCELLED
    # exclusive: four ran at a time, each on a node of its own
    assert len({result.node for result in results[:4]}) == 4


async def test_an_array_whose_submission_times_out_is_not_submitted_twice(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    programs(
        "sbatch",
        f'[ -e {tmp_path}/lost ] && exec $REAL "$@"; touch {tmp_path}/lost; $REAL "$@"\n'
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
    )
    jobs = [job(tmp_path, str(number), "sh", "-c", f"echo run >> {tmp_path}/runs; sleep 3") for number in range(3)]
    results = await (await submit(runner, jobs))
    assert {result.outcome for result in results} == {Ended.COMPLETED}
    assert len(jobs_of(slurm, tmp_path)) == 3
    assert (tmp_path / "runs").read_text() == "run\n" * 3


async def test_arrays_are_no_larger_than_the_site_allows(
    runner: SlurmRunner, tmp_path: Path, programs: Callable[[str, str], None]
) -> None:
    """Slurm's own limit is 1000; this one takes three."""
    programs(
        "sbatch",
        f'case "$*" in *--array=*,*,*,*) echo refused >> {tmp_path}/refused\n'
        "echo 'sbatch: error: Batch job submission failed: Invalid job array specification' >&2; exit 1;; esac\n"
        'exec $REAL "$@"',
    )
    jobs = [job(tmp_path, str(number), "true") for number in range(10)]
    results = await (await submit(runner, jobs))
    assert {result.outcome for result in results} == {Ended.COMPLETED}
    assert len((tmp_path / "refused").read_text().split()) == 3
    more = [job(tmp_path, f"more{number}", "true") for number in range(4)]
    await (await submit(runner, more))
    assert len((tmp_path / "refused").read_text().split()) == 3, "the limit is remembered"


async def test_a_real_slurm_refuses_an_array_that_is_too_large(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm
) -> None:
    reported = slurm.run("sh", "-c", "sbatch --array=0-5000 --wrap=true 2>&1")
    assert slurm_states.refusal(reported) == "array"


async def test_a_limit_on_jobs_lets_as_many_start_as_may(
    runner: SlurmRunner,
    tmp_path: Path,
    programs: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slurm_submission, "SUBMIT_PAUSE", 0.2)
    programs(
        "sbatch",
        f"exec 9> {tmp_path}/lock; flock 9\n"
        f'case "$*" in *--array=*) many=1;; esac; [ -e {tmp_path}/room ] || [ -z "$many" -a $(cat {tmp_path}/taken | '
        f"wc -l) -lt 2 ] || {{ echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit: Job violates accounting/QOS policy "
        "(job submit limit, user size and/or time limits)' >&2; exit 1; }\n"
        f'echo >> {tmp_path}/taken; exec $REAL "$@"',
    )
    (tmp_path / "taken").touch()
    jobs = [job(tmp_path, str(number), "true") for number in range(4)]
    tasks = [asyncio.create_task(runner.submit(folder, spec)) for folder, spec in jobs]
    await wait_for_async(lambda: sum(task.done() for task in tasks) >= 2)
    (tmp_path / "room").touch()
    await asyncio.gather(*tasks)
    assert {(await ended(runner, folder)).outcome for folder, _ in jobs} == {Ended.COMPLETED}


async def test_a_trial_cancelled_while_its_array_cannot_be_submitted(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    programs(
        "sbatch",
        f'[ -e {tmp_path}/back ] && exec $REAL "$@"\n'
        "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' >&2; exit 1",
    )
    jobs = [job(tmp_path, str(number), "true") for number in range(3)]
    tasks = [asyncio.create_task(runner.submit(folder, spec)) for folder, spec in jobs]
    await wait_for_async((jobs[1][0] / "job.sh").exists)
    await runner.cancel(jobs[1][0])
    (tmp_path / "back").touch()
    await asyncio.gather(*tasks)
    outcomes = [(await ended(runner, folder)).outcome for folder, _ in jobs]
    assert outcomes == [Ended.COMPLETED, Ended.CANCELLED, Ended.COMPLETED]
    assert len(jobs_of(slurm, tmp_path)) == 2


# -- exclusive nodes


async def test_an_exclusive_trial_has_its_node_for_itself(tmp_path: Path, slurm: Slurm) -> None:
    """Unless the administrator does not want that. Shared ones are side by side."""
    reported = {}
    for name, options, exclusive in (
        ("alone", [], True),
        ("shared", [], False),
        ("overridden", ["--oversubscribe"], True),
    ):
        runner = SlurmRunner(options)
        folder, spec = job(tmp_path, name, "sleep", "1", exclusive=exclusive)
        await runner.submit(folder, spec)
        shown = slurm.run("scontrol", "show", "job", (folder / "job").read_text())
        reported[name] = "OverSubscribe=NO" in shown
        assert (await ended(runner, folder)).outcome is Ended.COMPLETED
        runner.close()
    assert reported == {"alone": True, "shared": False, "overridden": False}


# -- replicates on different nodes


@pytest.mark.parametrize("exclusive", [False, True])
async def test_replicates_submitted_together_run_on_different_nodes(
    runner: SlurmRunner, tmp_path: Path, exclusive: bool, programs: Callable[[str, str], None]
) -> None:
    """One call of sinfo serves all of the replicates."""
    programs("sinfo", f'echo >> {tmp_path}/asked; exec $REAL "$@"')
    jobs = [gated(tmp_path, str(number), replicates="c", exclusive=exclusive) for number in range(4)]
    results = await submit(runner, jobs)
    await wait_for_async(lambda: all((folder / "owner").exists() for folder, _ in jobs))
    (tmp_path / "gate").touch()
    assert len({result.node for result in await results}) == 4
    assert (tmp_path / "asked").read_text() == "\n"


async def test_a_slow_node_does_not_get_all_replicates(runner: SlurmRunner, tmp_path: Path, slurm: Slurm) -> None:
    """Which finds its node idle each time, for the others are no faster to it: without spreading the first node in
    Slurm's order gets all of them."""
    nodes: dict[str, list[str]] = {"together": [], "spread": []}
    for kind, measured_on in nodes.items():
        for number in range(5):
            folder, spec = job(
                tmp_path,
                f"{kind}{number}",
                "true",
                replicates="c" if kind == "spread" else "",
                measured_on=list(measured_on),
            )
            await runner.submit(folder, spec)
            measured_on.append((await ended(runner, folder)).node)
            await wait_for_async(lambda: slurm.run("squeue", "-h", "-t", "running,completing") == "")
    assert len(set(nodes["together"])) == 1
    # each once before one twice
    assert len(set(nodes["spread"][:4])) == 4
    assert len(nodes["spread"]) == 5


async def test_a_job_that_is_compared_runs_on_the_node_of_the_other(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits while that node is busy, and runs anywhere if it takes no jobs."""
    monkeypatch.setattr(slurm_spread, "NODES_TIME", 0.5)
    node, others = slurm.nodes[2], slurm.nodes[:2] + slurm.nodes[3:]
    first = job(tmp_path, "first", "true", same_node=node)
    await runner.submit(*first)
    assert (await ended(runner, first[0])).node == node
    assert set((first[0] / "kept-off").read_text().split(",")) == set(others)
    busy = gated(tmp_path, "busy", scheduler_options=[f"--nodelist={node}"], exclusive=True)
    blocking = await submit(runner, [busy])
    await wait_for_async((busy[0] / "owner").exists)
    second = job(tmp_path, "second", "true", same_node=node)
    await runner.submit(*second)
    assert await runner.status(second[0]) is JobState.QUEUED
    (tmp_path / "gate").touch()
    await blocking
    assert (await ended(runner, second[0])).node == node
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    gone = job(tmp_path, "gone", "true", same_node=node)
    await runner.submit(*gone)
    assert (await ended(runner, gone[0])).node in others
    slurm.run("scontrol", "update", f"nodename={node}", "state=resume")
    slurm.settle()


async def test_waiting_replicates_avoid_the_nodes_of_running_replicates(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submitted at different moments, while no node is free for any of them."""
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=drain", "reason=test")
    monkeypatch.setattr(slurm_spread, "NODES_TIME", 0.5)
    first, second = (gated(tmp_path, name, replicates="c") for name in ("first", "second"))
    results = [await submit(runner, [first]), await submit(runner, [second])]
    slurm.run("scontrol", "update", f"nodename={slurm.nodes[1]}", "state=resume")
    await wait_for_async((first[0] / "owner").exists)
    shown = ["scontrol", "show", "job", (second[0] / "job").read_text()]
    await wait_for_async(lambda: f"ExcNodeList={slurm.nodes[1]}" in slurm.run(*shown) or (second[0] / "owner").exists())
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=resume")
    await wait_for_async((second[0] / "owner").exists)
    (tmp_path / "gate").touch()
    (one,), (two,) = [await result for result in results]
    assert one.outcome is two.outcome is Ended.COMPLETED


@pytest.mark.parametrize(
    "options", [["--nodelist=NODE"], ["-w", "NODE"], ["--exclude", "OTHERS"], ["--partition", "short", "-wNODE"]]
)
async def test_jobs_that_name_nodes_run_there(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, options: list[str]
) -> None:
    node, others = slurm.nodes[2], ",".join(slurm.nodes[:2] + slurm.nodes[3:])
    named = [option.replace("NODE", node).replace("OTHERS", others) for option in options]
    folder, spec = job(tmp_path, "a", "true", replicates="c", measured_on=[node] * 9, scheduler_options=named)
    await runner.submit(folder, spec)
    assert (await ended(runner, folder)).node == node


async def test_a_preference_for_another_node_does_not_block_a_job(
    runner: SlurmRunner, tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other node can take the job; the others go away later; they stay busy for too long."""
    # the administrator's constraint: only the first node is large enough for it, and Slurm alone knows
    monkeypatch.setattr(slurm_spread, "NODES_TIME", 0.5)
    measured, *others = slurm.nodes
    slurm.run("scontrol", "update", f"nodename={measured}", "availablefeatures=large", "activefeatures=large")
    large = job(tmp_path, "a", "true", replicates="a", measured_on=[measured], scheduler_options=["--constraint=large"])
    await runner.submit(*large)
    assert (await ended(runner, large[0])).node == measured
    busy = [gated(tmp_path, f"busy{node}", scheduler_options=[f"--nodelist={node}"], exclusive=True) for node in others]
    blocking = await submit(runner, busy)
    await wait_for_async(lambda: all((folder / "owner").exists() for folder, _ in busy))
    monkeypatch.setattr(slurm_spread, "PATIENCE", 2.0)
    patient = job(tmp_path, "b", "true", replicates="b", measured_on=[measured])
    began = time.monotonic()
    await runner.submit(*patient)
    assert (await ended(runner, patient[0])).node == measured
    assert time.monotonic() - began >= 2
    monkeypatch.setattr(slurm_spread, "PATIENCE", 600.0)
    last = job(tmp_path, "c", "true", replicates="c", measured_on=[measured])
    await runner.submit(*last)
    assert (last[0] / "kept-off").read_text() == measured
    slurm.run("scontrol", "update", f"nodename={','.join(others)}", "state=drain", "reason=test")
    assert (await ended(runner, last[0])).node == measured
    (tmp_path / "gate").touch()
    await blocking
    slurm.settle()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,07-08],m", ["n1", "n2", "n3", "n07", "n08", "m"]),
        ("a[1-2]x,b3", ["a1x", "a2x", "b3"]),
        ("", []),
        ("n1,n[2-3,4", ["n1"]),
    ],
)
def test_names_of_nodes(text: str, names: list[str]) -> None:
    assert expand(text) == names


# -- jobs that wait, and cancels that do not


def test_a_held_job_waits_and_its_reason_is_reported(agent: AgentProcess, far_side: FarSide, slurm: Slurm) -> None:
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=drain", "reason=test")
    agent.start("--runner", "slurm")
    lease = far_side.offer("gated", x=1.0)
    wait_for(lambda: jobs_of(slurm, agent.state) == ["PENDING"])
    (number,) = (number for number, (state, _, _) in slurm.jobs().items() if state == "PENDING")
    slurm.run("scontrol", "hold", number)
    far_side.wait_for(lambda: "is held" in far_side.waiting.get(lease, ""))
    assert "(JobHeld" in far_side.waiting[lease]
    wait_for(lambda: far_side.waiting.get(lease, "no reason") in agent.log)
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=resume")
    assert lease not in far_side.settled
    slurm.run("scontrol", "release", number)
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED
    far_side.wait_for(lambda: lease not in far_side.waiting)
    settled_once(far_side, lease)


def test_a_cancel_reaches_the_job_while_slurmctld_is_away(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    agent.start("--runner", "slurm", "--slots", "2")
    one, two = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_for(lambda: sorted((place / "runs").read_text().split()) == ["1.0", "2.0"])

    def while_it_is_away() -> None:
        far_side.to_cancel[one] = "pruned"
        assert far_side.outcome(one).outcome == Outcome.OUTCOME_CANCELLED
        # and SIGTERM ends the other: the agent waits for nobody
        agent.stop()
        assert far_side.settled[two].outcome == Outcome.OUTCOME_RELEASED

    slurm.restart_controller(while_it_is_away)
    wait_for(lambda: processes_of(agent.state) == [])
    wait_for(lambda: slurm.run("squeue", "-h") == "")
    wait_for(lambda: slurm.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(len(slurm.nodes)))


def test_the_node_and_the_placement_go_all_the_way(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    agent.start("--runner", "slurm", "--slots", "4")
    leases = [far_side.offer("gated", application="gate", placed=(True, True, ()), x=1.0) for _ in range(3)]
    wait_for(lambda: (place / "runs").read_text() == "1.0\n" * 3)
    shown = slurm.run("scontrol", "show", "jobs")
    assert shown.count("OverSubscribe=NO") >= 3
    (place / "gate1.0").touch()
    nodes = [far_side.outcome(lease).node for lease in leases]
    assert len(set(nodes)) == 3
    later = far_side.offer("gated", placed=(False, True, tuple(nodes)), x=1.0)
    assert {*nodes, far_side.outcome(later).node} == set(slurm.nodes)
