"""Follow the matched jobs of Slurm to their ends.

The agent asks squeue for the jobs that it knows, which needs no installation on the cluster and misses no job while the
agent is away for less than Slurm's MinJobAge (five minutes by default). Later it asks sacct, if there is accounting.

A user says which job belongs to a submission, so Slurm has to know it as a job of this user that was submitted after
the question. Its run time and its nodes are what Slurm says.
"""

import asyncio
import re
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trimtab_agent.logger import Logger
from trimtab_agent.matching.matcher import Matcher
from trimtab_agent.matching.spool import Spool
from trimtab_agent.runners import slurm_client, slurm_options, slurm_states
from trimtab_agent.runners.base import Outcome
from trimtab_agent.runners.slurm_client import SlurmError
from trimtab_agent.submissions import End, Submission

logger = Logger(__name__)

# Seconds between two looks at the jobs; between two looks at the cluster, and after one without success.
INTERVAL = 5.0
CLUSTER_INTERVAL = 600.0
RETRY_INTERVAL = 60.0
# Name, usual and longest time limit of each partition.
LISTED = "--format=%P|%L|%l"
# Jobs in one call of squeue.
MOST_JOBS = 500
# Tasks of an array whose ends are kept. The run time of the array is the mean of its tasks'.
MOST_TASKS = 1000
# Seconds by which the clock of Slurm's controller may be behind the one of this machine.
CLOCK = 60.0
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_UNKNOWN = re.compile("Invalid job id")


@dataclass(frozen=True)
class Found:
    """A job in Slurm: whose it is, when it was submitted (seconds since 1970), its nodes, and how it ended.

    `ends` has an end for each task of an array, or for the job; None while it waits or runs.
    """

    uid: int
    submitted_at: float
    nodes: int
    ends: Mapping[str, End | None]

    def belongs_to(self, submission: Submission) -> bool:
        """Return whether it can be the job of a submission."""
        return self.uid == submission.uid and self.submitted_at >= submission.job.submitted_at - CLOCK


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
        listed = [line.split("|") for line in (await slurm_client.call("sinfo", "--noheader", LISTED)).split()]
    except SlurmError:  # Slurm is away, or its programs are installed without a configuration
        return RETRY_INTERVAL
    matcher.cluster.nodes = max(1, len(nodes))
    matcher.cluster.default_partition = next((one.rstrip("*") for one, *_ in listed if one.endswith("*")), "")
    matcher.cluster.limits = {
        name.rstrip("*"): slurm_options.seconds(usual) or slurm_options.seconds(most) or 0.0
        for name, usual, most in listed
    }
    return CLUSTER_INTERVAL


async def _look(submissions: Sequence[Submission], spool: Spool) -> None:
    jobs = await _jobs([one.job_id for one in submissions])
    for one in submissions:
        found = jobs.get(one.job_id)
        if found is None and not one.tasks:
            found = await _accounted(one.job_id)
            if found is None:
                logger.info("the end of a matched job is not known, Slurm has forgotten it", job_id=one.job_id)
                spool.remove(one.id)
                continue
        if found is not None and not (found.belongs_to(one) and spool.claim(one)):
            logger.warning(
                "a job does not belong to the submission that names it", job_id=one.job_id, user=one.job.user
            )
            spool.remove(one.id)
            continue
        ends = {**one.tasks, **{name: end for name, end in _ends(found).items() if end is not None}}
        ends = dict(list(ends.items())[-MOST_TASKS:])
        over = all(end is not None for end in _ends(found).values())
        if over or ends != one.tasks:
            job = one.job if found is None else replace(one.job, nodes=found.nodes or one.job.nodes)
            end = _together([*ends.values()]) if over else None
            spool.put(replace(one, job=job, tasks=ends, end=end, confirmed=over))


def _ends(found: Found | None) -> Mapping[str, End | None]:
    """Return the ends of a job's tasks; none if Slurm has forgotten them."""
    return {} if found is None else found.ends


async def _jobs(jobs: Sequence[str]) -> Mapping[str, Found]:
    """Return the jobs that Slurm's controller knows, by their ids."""
    columns = "--format=%F|%i|%T|%M|%U|%V|%D"
    options = ["--noheader", "--all", "--array", "--states=all", f"--jobs={','.join(jobs)}", columns]
    try:
        listed = await slurm_client.call("squeue", *options)
    except SlurmError as error:
        if _UNKNOWN.search(str(error)):  # squeue's answer if it knows none of the jobs
            return {}
        raise
    found: dict[str, Found] = {}
    for job, task, state, elapsed, uid, submitted, nodes in _rows(listed):
        # The first part of a heterogeneous job has the job's own id. Tasks of an array may be submitted again.
        known = found.get(job)
        ends = {**(known.ends if known else {}), task: end_of(state, seconds_of(elapsed))}
        first = min(_moment(submitted), known.submitted_at) if known else _moment(submitted)
        found[job] = Found(int(uid), first, known.nodes if known else _count(nodes), ends)
    return found


def _rows(listed: str) -> Iterator[list[str]]:
    for line in listed.splitlines():
        parts = line.split("|")
        if len(parts) == 7 and parts[4].isdecimal():
            yield parts


async def _accounted(job: str) -> Found | None:
    """Return a job that has ended from accounting; None without accounting."""
    columns = "--format=State,ElapsedRaw,UID,Submit,NNodes"
    try:
        options = ["--noheader", "--parsable2", "--allocations", f"--jobs={job}", columns]
        for line in (await slurm_client.call("sacct", *options)).splitlines():
            state, elapsed, uid, submitted, nodes = line.split("|")
            end = end_of(state.partition(" ")[0], float(elapsed))
            return None if end is None else Found(int(uid), _moment(submitted), _count(nodes), {job: end})
    except (SlurmError, ValueError):
        pass
    return None


def _moment(text: str) -> float:
    """Return a time of Slurm (2026-11-28T17:00:00, in this machine's zone) in seconds since 1970; 0 if unknown."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _count(text: str) -> int:
    """Return a number of nodes; 0 if Slurm says something else, such as 1K."""
    return int(text) if text.isdecimal() else 0


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
