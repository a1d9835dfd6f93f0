"""Answer the requests of submission hosts."""

import asyncio
import re
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from trimtab_agent import invocation
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError, ConfigError, NotForJobsError
from trimtab_agent.installed import Installed
from trimtab_agent.logger import Logger
from trimtab_agent.matching import decision, protocol
from trimtab_agent.matching.cache import Cache
from trimtab_agent.matching.decision import Decided
from trimtab_agent.matching.exploring import Explorer
from trimtab_agent.matching.protocol import MalformedError, Pairs
from trimtab_agent.matching.request import Request, command_line
from trimtab_agent.matching.spool import Spool
from trimtab_agent.policy import Policy
from trimtab_agent.runners import slurm_options
from trimtab_agent.submissions import Considered, Decision, End, Job, Match, Submission

logger = Logger(__name__)

# Seconds for which the cache answers after the service has not, so that submissions do not wait again and again.
AWAY = 2.0
# The protocol's limit of components in a question.
MOST_COMPONENTS = 32
_SUBMISSION = re.compile("[0-9a-f]{32}")
_JOB_ID = re.compile("[0-9]{1,10}")
# Longest run time that a command may report, in seconds.
LONGEST_RUN = 365 * 86400.0


class Cluster:
    """The scheduler's nodes, its default partition, and the seconds after which a partition ends a job that sets no
    limit, as last seen."""

    def __init__(self) -> None:
        self.nodes = 1
        self.default_partition = ""
        self.limits: Mapping[str, float] = {}


class Matcher:
    """Asks the service about jobs, decides under the policy, and records what was decided."""

    def __init__(self, policy: Policy, installed: Installed, control: ControlPlane, spool: Spool) -> None:
        self._policy = policy
        self._rules = policy.matching
        self._installed = installed
        self._control = control
        self._spool = spool
        self._cache = Cache(self._rules.cached_answers, self._rules.cache_hours * 3600)
        self._away_until = 0.0
        self._explorer = Explorer(self._rules.explore, control)
        self.cluster = Cluster()
        # set if a submission has ended
        self.news = asyncio.Event()

    async def answer(self, verb: str, pairs: Pairs, uid: int, user: str) -> Pairs:
        """Return the answer to a request of a user.

        Raises:
            MalformedError: the request is not allowed.
        """
        if verb == protocol.ASK:
            return await self._ask(Request.of(pairs), uid, user)
        given = dict(pairs)
        submission = given.get("submission", "")
        if not _SUBMISSION.fullmatch(submission):
            raise MalformedError(f"submission: {submission[:40]!r} is not 32 hexadecimal digits")
        if verb == protocol.SUBMITTED:
            if not _JOB_ID.fullmatch(job_id := given.get("job_id", "")):
                raise MalformedError(f"job_id: {job_id[:40]!r} is not a number")
            self._spool.submitted(submission, uid, job_id)
        elif verb == protocol.ENDED:
            self._spool.ended(submission, uid, _end(given), confirmed=self._rules.trust_commands)
            self.news.set()
        else:
            raise MalformedError(f"{verb[:20]!r} is not one of ask, submitted, ended")
        return []

    async def _ask(self, request: Request, uid: int, user: str) -> Pairs:
        rules, loop = self._rules, asyncio.get_running_loop()
        until = loop.time() + rules.timeout
        partition = request.partition or (self.cluster.default_partition if request.has_scheduler else "")
        if rules.mode == "off" or not rules.allow_user(user) or not rules.allow_partition(partition):
            return []
        try:
            offered = self._policy.offered(self._installed.components)
        except ConfigError:  # the component files have just changed
            return []
        components = {name: one for name, one in offered.items() if rules.use_of(name) is not None}
        job = Job(
            user=user,
            name=request.name,
            program=request.program,
            command_line=command_line(tuple(invocation.hidden(request.argv))),
            submitted_at=time.time(),
            nodes=request.nodes,
            cluster=rules.cluster or request.cluster or socket.gethostname(),
            cluster_nodes=max(self.cluster.nodes, request.nodes),
            partition=partition,
        )
        matches = await self._matches(job, list(components)[:MOST_COMPONENTS])
        if not matches:
            return []
        decided = decision.decide(matches, components, self._policy, request)
        name = uuid.uuid4().hex
        match = next((one for one in matches if one.record == decided.applied), None)
        if match is not None and request.may_explore and loop.time() >= self._away_until:
            own = slurm_options.seconds(request.time.strip()) or 0.0
            limit = own if request.time else self.cluster.limits.get(partition, 0.0)
            explored = await self._explorer.ask(name, match, job, limit, until - loop.time())
            if explored is not None and explored.candidate:
                try:
                    decided = decision.try_candidate(explored, match, matches, self._policy, components, request)
                except NotForJobsError as error:
                    logger.info("a candidate is not applied", job=job.name, trial=explored.trial, reason=error)
        submission = Submission(name, uid, job, decided.considered, kind=request.kind)
        self._spool.put(submission)
        _log(submission, decided)
        return _answer(submission, decided)

    async def _matches(self, job: Job, components: Sequence[str]) -> Sequence[Match]:
        """Return the matches from the service, or from the cache if the service does not answer in time."""
        loop = asyncio.get_running_loop()
        if not components:
            return ()
        if loop.time() >= self._away_until:
            try:
                async with asyncio.timeout(self._rules.timeout):
                    matches = await self._control.match(job, components, self._rules.timeout)
            except (CallError, TimeoutError) as error:
                self._away_until = loop.time() + AWAY
                reason = str(error) or "the service has not answered in time"
                logger.info("jobs are matched from the cache", reason=reason)
            else:
                self._cache.put(job, matches)
                return matches
        return [one for one in self._cache.get(job) if one.component in components]


def _end(given: dict[str, str]) -> End:
    try:
        status, seconds = int(given.get("status", "")), float(given.get("seconds", ""))
    except ValueError:
        raise MalformedError("status and seconds must be numbers") from None
    if not 0 <= seconds <= LONGEST_RUN:
        raise MalformedError(f"seconds: {seconds!r} is not from 0 to {LONGEST_RUN:g}")
    return End("completed" if status == 0 else "failed", seconds, time.time())


def _answer(submission: Submission, decided: Decided) -> Pairs:
    pairs = [("submission", submission.id)]
    if marks := decided.marks:
        pairs += [("set", f"{name}={text}") for name, text in decided.environment.items()]
        pairs += [("preload", library) for library in decided.preload]
        pairs += [("option", f"{name}={text}") for name, text in decided.options.items()]
        pairs.append(("comment", " ".join(marks)))
    pairs.append(("note", "; ".join(_sentence(one) for one in decided.considered)))
    return pairs


def _sentence(one: Considered) -> str:
    done = {
        Decision.APPLIED: "its settings are applied; TRIMTAB_MATCH=off prevents this",
        Decision.CONTROL: "nothing is changed, because this job is a control",
        Decision.DRY_RUN: "nothing is changed (dry run)",
        Decision.REFUSED: f"nothing is changed: {one.reason}",
        Decision.EXPLORED: f"{one.reason[:1].lower()}{one.reason[1:-1]}; TRIMTAB_MATCH=proven prevents this",
    }
    return f"record {one.record} resembles the job (score {one.score:.2f}); {done[one.decision]}"


def _log(submission: Submission, decided: Decided) -> None:
    job = submission.job
    additions = [f"{name}={text}" for name, text in decided.environment.items()]
    additions += [f"LD_PRELOAD+={PurePosixPath(library)}" for library in decided.preload]
    additions += [f"--{name}={text}" for name, text in decided.options.items()]
    for one in decided.considered:
        logger.info(
            "a job resembles a record",
            job=job.name,
            user=job.user,
            record=one.record,
            score=f"{one.score:.2f}",
            decision=one.decision.value,
            reason=one.reason,
        )
    if any(one.decision is Decision.DRY_RUN for one in decided.considered):
        logger.info(
            "a dry run leaves a job unchanged", job=job.name, user=job.user, additions=" ".join(additions) or "nothing"
        )
