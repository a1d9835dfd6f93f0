"""Follow the matched jobs of Slurm to their ends.

The agent asks squeue for the jobs that it knows, which needs no installation on the cluster and misses no job while the
agent is away for less than Slurm's MinJobAge (five minutes by default). Later it asks sacct, if there is accounting.
"""

import asyncio
import re
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trimtab_agent.logger import Logger
from trimtab_agent.matching.matcher import Matcher
from trimtab_agent.matching.spool import Spool
from trimtab_agent.runners import slurm_client, slurm_states
from trimtab_agent.runners.base import Outcome
from trimtab_agent.runners.slurm_client import SlurmError
from trimtab_agent.submissions import End, Submission

logger = Logger(__name__)

# Seconds between two looks at the jobs; between two looks at the cluster, and after one without success.
INTERVAL = 5.0
CLUSTER_INTERVAL = 600.0
RETRY_INTERVAL = 60.0
# Jobs in one call of squeue.
MOST_JOBS = 500
# Tasks of an array whose ends are kept. The run time of the array is the mean of its tasks'.
MOST_TASKS = 1000
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_UNKNOWN = re.compile("Invalid job id")

# By job id: by the id of a job or task, its end, or None while it waits or runs.
Tasks = Mapping[str, Mapping[str, End | None]]


async def follow(spool: Spool, matcher: Matcher) -> None:
    """Record the ends of jobs, without end."""
    if shutil.which("squeue") is None:
        return
    next_look = time.monotonic()
    failures = 0
    while True:
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + await _look_at_cluster(matcher)
        running = spool.running()
        try:
            for start in range(0, len(running), MOST_JOBS):
                await _look(running[start : start + MOST_JOBS], spool)
            failures = 0
        except SlurmError as error:
            failures += 1
            if failures in (1, 5) or failures % 60 == 0:
                logger.info("the ends of matched jobs are not known yet", error=str(error).partition("\n")[0])
        spool.sweep()
        if spool.finished(1):
            matcher.news.set()
        await asyncio.sleep(INTERVAL)


async def _look_at_cluster(matcher: Matcher) -> float:
    """Read the nodes and the default partition; return the seconds until the next look."""
    try:
        nodes = await slurm_client.nodes()
        listed = (await slurm_client.call("sinfo", "--noheader", "--format=%P")).split()
    except SlurmError:  # Slurm is away, or its programs are installed without a configuration
        return RETRY_INTERVAL
    matcher.cluster.nodes = max(1, len(nodes))
    matcher.cluster.default_partition = next((one.rstrip("*") for one in listed if one.endswith("*")), "")
    return CLUSTER_INTERVAL


async def _look(submissions: Sequence[Submission], spool: Spool) -> None:
    found = await _tasks([one.job_id for one in submissions])
    for one in submissions:
        tasks = found.get(one.job_id)
        if tasks is None and not one.tasks:
            end = await _accounted(one.job_id)
            if end is None:
                logger.info("the end of a matched job is not known, Slurm has forgotten it", job_id=one.job_id)
                spool.remove(one.id)
            else:
                spool.put(replace(one, end=end))
            continue
        ends = {**one.tasks, **{name: end for name, end in (tasks or {}).items() if end is not None}}
        ends = dict(list(ends.items())[-MOST_TASKS:])
        over = all(end is not None for end in (tasks or {}).values())
        if over or ends != one.tasks:
            spool.put(replace(one, tasks=ends, end=_together([*ends.values()]) if over else None))


async def _tasks(jobs: Sequence[str]) -> Tasks:
    options = ["--noheader", "--all", "--array", "--states=all", f"--jobs={','.join(jobs)}", "--format=%F|%i|%T|%M"]
    try:
        listed = await slurm_client.call("squeue", *options)
    except SlurmError as error:
        if _UNKNOWN.search(str(error)):  # squeue's answer if it knows none of the jobs
            return {}
        raise
    found: dict[str, dict[str, End | None]] = {}
    for job, task, state, elapsed in _rows(listed):
        # The first part of a heterogeneous job has the job's own id.
        found.setdefault(job, {})[task] = end_of(state, seconds_of(elapsed))
    return found


def _rows(listed: str) -> Iterator[list[str]]:
    for line in listed.splitlines():
        parts = line.split("|")
        if len(parts) == 4:
            yield parts


async def _accounted(job: str) -> End | None:
    """Return the end of a job from accounting; None without accounting."""
    try:
        options = ["--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State,ElapsedRaw"]
        for line in (await slurm_client.call("sacct", *options)).splitlines():
            state, elapsed = line.split("|")
            return end_of(state.partition(" ")[0], float(elapsed))
    except (SlurmError, ValueError):
        pass
    return None


def end_of(state: str, seconds: float) -> End | None:
    """Return the end that a state of Slurm means; None if the job is not over."""
    if state == "COMPLETED":
        return End("completed", seconds, time.time())
    if state == "CANCELLED":
        return End("cancelled", seconds, time.time())
    outcome = slurm_states.meaning_of(state).outcome
    return End("failed", seconds, time.time()) if outcome in (Outcome.FAILED, Outcome.INFEASIBLE) else None


def seconds_of(elapsed: str) -> float:
    """Return Slurm's [days-][hours:]minutes:seconds in seconds; 0 if it is something else."""
    match = _ELAPSED.fullmatch(elapsed.strip())
    if match is None:
        return 0.0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _together(ends: Sequence[End]) -> End:
    """Return the end of a job with these tasks."""
    state = next((state for state in ("failed", "cancelled") if any(end.state == state for end in ends)), "completed")
    return End(state, statistics.fmean(end.seconds for end in ends), max(end.at for end in ends))
