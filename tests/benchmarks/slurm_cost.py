"""The costs of the Slurm runner: seconds per trial beyond the same command in a job by hand, calls of Slurm's programs
with 200 jobs in the queue, submitting 20 trials as one job array and one by one, and the time from a cancel to the
job's end: from the runner's, and from the service's commit that a trial is to be stopped. A real Slurm of four virtual
nodes.

The service's cancel takes the whole way: embedded service, held heartbeat, agent, scancel; the application ignores
SIGTERM. The time begins before StopTrial is called and ends when no process of the trial is left.

By hand: `sbatch`, then `squeue` for that one job every 50 ms until it has completed. `sbatch --wait` would be the
easier peer: it takes two to ten seconds to notice the end.

Run as `python -m tests.benchmarks.slurm_cost [--quick]`.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.benchmarks.agents import running_agent
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.service import EmbeddedService
from tests.factories.slurm import Slurm, slurm_cluster
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.base import JobSpec, Outcome
from trimtab_agent.runners.slurm import SlurmRunner

if TYPE_CHECKING:
    from trimtab.study import Study

COMMAND = ("sleep", "0.2")
TARGET_SECONDS = 0.3
TARGET_CANCEL_SECONDS = 2.0
QUEUED = 200
BATCH = 20
STUBBORN = """
name: stubborn
parameters:
  x: {type: float, min: 0, max: 1, default: 0.5, env: X}
applications:
  main: {command: [sh, -c, "trap '' TERM; sleep 600 & sleep 600"]}
metrics:
  seconds: wall_time
"""
WATCHED_SECONDS = 20.0


def by_hand(slurm: Slurm, folder: Path) -> float:
    """Seconds from the submission to the end."""
    script = folder / "job.sh"
    script.write_text(f"#!/bin/sh\n{' '.join(COMMAND)}\n")
    began = time.monotonic()
    job = slurm.run("sbatch", "--parsable", f"--chdir={folder}", "--output=out", str(script)).strip()
    while slurm.run("squeue", "-h", "--states=all", f"--jobs={job}", "-o", "%T").strip() != "COMPLETED":
        time.sleep(0.05)
    return time.monotonic() - began


def job(folder: Path, *command: str) -> JobSpec:
    """A trial that runs the command."""
    (folder / "work").mkdir(parents=True)
    return JobSpec(
        name=folder.name,
        work=str(folder / "work"),
        cwd=str(folder / "work"),
        command=command,
        env={},
        base_env={},
        timeout=600.0,
        metrics=[{"name": "seconds", "kind": "wall_time"}],
        required=["seconds"],
        params={},
        python=sys.executable,
    )


async def trial(runner: SlurmRunner, folder: Path) -> float:
    """Seconds from the submission to the result."""
    spec = job(folder, *COMMAND)
    began = time.monotonic()
    await runner.submit(folder, spec)
    done = await runner.wait(folder)
    seconds = time.monotonic() - began
    if done.outcome is not Outcome.COMPLETED:
        raise RuntimeError(done.reason)
    return seconds


async def cancelled(runner: SlurmRunner, folder: Path) -> float:
    """Seconds from the cancel to the end of a job that ignores SIGTERM."""
    await runner.submit(folder, job(folder, "sh", "-c", "trap '' TERM; sleep 60"))
    await runner.started(folder)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await runner.cancel(folder)
    await runner.wait(folder)
    return time.monotonic() - began


async def submitted(runner: SlurmRunner, place: Path, *, together: bool) -> tuple[float, int]:
    """Seconds until Slurm has some jobs, and calls of sbatch."""
    jobs = [(place / f"batch{together}{number}", ["true"]) for number in range(BATCH)]
    specs = [(folder, job(folder, *command)) for folder, command in jobs]
    with patch.object(slurm_client, "call", wraps=slurm_client.call) as counted:
        began = time.monotonic()
        if together:
            await asyncio.gather(*(runner.submit(folder, spec) for folder, spec in specs))
        else:
            for folder, spec in specs:
                await runner.submit(folder, spec)
        seconds = time.monotonic() - began
        calls = sum(call.args[0] == "sbatch" for call in counted.call_args_list)
    await asyncio.gather(*(runner.wait(folder) for folder, _ in specs))
    return seconds, calls


def stopped_by_the_service(place: Path, repetitions: int) -> list[float]:
    """Seconds from each StopTrial to the end of the last process of the trial's job."""
    import trimtab

    folder = place / "whole"
    (folder / "components").mkdir(parents=True)
    (folder / "components" / "stubborn.yaml").write_text(STUBBORN)
    seconds = []
    with (
        EmbeddedService(folder / "service") as service,
        running_agent(service, folder, options=["--runner", "slurm"]),
        trimtab.Client(service.grpc_address, token=service.token) as client,
    ):
        study = client.create_study(
            "stubborn",
            space=[trimtab.Float("x", 0.0, 1.0)],
            objectives=[trimtab.Minimize("seconds")],
            algorithm="random",
            component="stubborn",
            application="main",
        )
        for number in range(1, repetitions + 1):
            eventually(partial(_node, study, number))
            (lease,) = (folder / "agent" / "leases").iterdir()
            eventually(partial(_is_running, lease))
            time.sleep(random.uniform(0.5, 1.5))  # at any moment between two heartbeats
            began = time.monotonic()
            study.stop_trial(number)
            eventually(partial(_is_gone, lease))
            seconds.append(time.monotonic() - began)
        study.stop()
    return seconds


def _node(study: "Study", number: int) -> str:
    return study.trial(number).node


def _is_running(lease: Path) -> bool:
    return len(processes_of(lease)) > 2  # the supervisor, the application and its child


def _is_gone(lease: Path) -> bool:
    return not processes_of(lease)


def processes_of(lease: Path) -> list[int]:
    """The processes of a lease's job, its supervisor included."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and os.fsencode(lease) in (
                (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            ):
                found.append(int(process.name))
    return found


def eventually(condition: Callable[[], object]) -> None:
    """Waits for the condition."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("it did not come about")
        time.sleep(0.01)


async def calls_per_minute(runner: SlurmRunner, place: Path) -> float:
    """Return the calls of all programs of Slurm per minute while the runner follows the jobs."""
    folders = [place / f"queued{number}" for number in range(QUEUED)]
    await asyncio.gather(*(runner.submit(folder, job(folder, "sleep", "600")) for folder in folders))
    waiting = [asyncio.create_task(runner.wait(folder)) for folder in folders]
    await asyncio.sleep(10)  # looks come less often by now
    with patch.object(slurm_client, "call", wraps=slurm_client.call) as counted:
        await asyncio.sleep(WATCHED_SECONDS)
        calls = counted.call_count
    await asyncio.gather(*(runner.cancel(folder) for folder in folders))
    await asyncio.gather(*waiting)
    return calls * 60 / WATCHED_SECONDS


async def measure(slurm: Slurm, place: Path, repetitions: int) -> Result:
    """All of it."""
    runner = SlurmRunner()
    hand, ours = [], []
    for number in range(repetitions):
        (place / f"hand{number}").mkdir()
        hand.append(await asyncio.to_thread(by_hand, slurm, place / f"hand{number}"))
        await asyncio.sleep(0.3)  # the node is free again
        ours.append(await trial(runner, place / f"trial{number}"))
        await asyncio.sleep(0.3)
    cancels = [await cancelled(runner, place / f"cancelled{number}") for number in range(repetitions // 2)]
    together, one_by_one = [await submitted(runner, place, together=together) for together in (True, False)]
    stopped = await asyncio.to_thread(stopped_by_the_service, place, repetitions // 2)
    calls = await calls_per_minute(runner, place)
    runner.close()
    more = statistics.median(ours) - statistics.median(hand)
    longest = max(cancels)
    rows = [
        Row("a job by hand, median", statistics.median(hand), "s"),
        Row("a trial takes more, median", more, "s", f"at most {TARGET_SECONDS:g} s", more <= TARGET_SECONDS),
        Row(f"calls per minute with {QUEUED} jobs in the queue", calls, ""),
        Row(
            "from cancel to end, longest",
            longest,
            "s",
            f"under {TARGET_CANCEL_SECONDS:g} s",
            longest < TARGET_CANCEL_SECONDS,
        ),
        Row("from the service's cancel to the job's end, median", statistics.median(stopped), "s"),
        Row(
            "… longest",
            max(stopped),
            "s",
            f"under {TARGET_CANCEL_SECONDS:g} s",
            max(stopped) < TARGET_CANCEL_SECONDS,
        ),
        Row(f"{BATCH} trials submitted together, {together[1]} sbatch", together[0], "s"),
        Row(f"{BATCH} trials submitted one by one, {one_by_one[1]} sbatch", one_by_one[0], "s"),
    ]
    return result(rows, by_hand=hand, trials=ours, cancels=cancels, stopped=stopped)


def run(quick: bool) -> Result:
    """See the module's text."""
    if slurm_client.missing_programs():
        raise RuntimeError("Slurm is not installed (Debian packages slurm-wlm and munge)")
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name:
        (Path(name) / "slurm").mkdir()
        with slurm_cluster(Path(name) / "slurm") as slurm, patch.dict(os.environ, SLURM_CONF=str(slurm.configuration)):
            return asyncio.run(measure(slurm, Path(name), 4 if quick else 20))


if __name__ == "__main__":
    main("Cost of a trial on Slurm", run)
