"""Pairs of a live study in which matched jobs of this host take part.

At most a share of the jobs that get proven settings may get a candidate in their place. The service chooses it, and
says which job of a pair gets it. Nothing is kept over a restart: jobs are counted from 0 then, so the share holds.
"""

import asyncio
import math
from collections import OrderedDict

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError
from trimtab_agent.logger import Logger
from trimtab_agent.submissions import Explored, Job, Match

logger = Logger(__name__)

# Kinds of jobs of which one waits for the second one of its pair.
MOST_WAITING = 1000


class Explorer:
    """Asks the service for a place in a pair, for one in each 1/share jobs and for the second job of each pair."""

    def __init__(self, share: float, control: ControlPlane) -> None:
        self._share = share
        # 1/0.07 jobs are 15. The quotient of 1 and 0.1 is not exactly 10.
        self._every = math.ceil(round(1 / share, 9)) if share else 0
        self._control = control
        self._since = 0
        self._waiting: OrderedDict[tuple[object, ...], None] = OrderedDict()

    async def ask(self, submission: str, match: Match, job: Job, limit: float, seconds: float) -> Explored | None:
        """Count a job that gets proven settings, and return its place in a pair; None if it belongs to none.

        `limit` is the job's time limit in seconds, 0 without one. The answer takes at most `seconds`. A question
        counts as a candidate, also if the service refuses it.
        """
        if not self._every:
            return None
        self._since += 1
        kind = (match.record, job.user, job.cluster, job.partition, job.program, job.nodes, limit)
        is_second = kind in self._waiting
        if not is_second and self._since < self._every:
            return None
        if is_second:
            del self._waiting[kind]
        else:
            self._since = 0
        try:
            async with asyncio.timeout(seconds):
                found = await self._control.explore(
                    match.record, submission, job, begin=not is_second, share=self._share, limit=limit, seconds=seconds
                )
        except (CallError, TimeoutError) as error:
            # The pair still waits for its second job.
            if is_second:
                self._wait(kind)
            logger.info(
                "a job gets the proven settings, the service gives no place in a pair",
                reason=str(error) or "no answer in time",
            )
            return None
        if found.waits:
            self._wait(kind)
        if not found.study:
            logger.info("a job gets the proven settings", job=job.name, code=found.code, reason=found.reason)
            return None
        return found

    def _wait(self, kind: tuple[object, ...]) -> None:
        self._waiting[kind] = None
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
