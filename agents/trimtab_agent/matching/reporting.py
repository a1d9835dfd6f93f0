"""Report how matched jobs ended, until the service has acknowledged each."""

import asyncio
import contextlib
from collections.abc import Sequence

from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.errors import CallError, CallRefusedError
from trimtab_agent.logger import Logger
from trimtab_agent.matching.matcher import Matcher
from trimtab_agent.matching.spool import Spool
from trimtab_agent.submissions import Submission

logger = Logger(__name__)

# Jobs in one report. Long command lines may make it too long for the service nevertheless.
BATCH = 100
TOO_LARGE = "message_too_large"
# Seconds after which finished submissions are looked for without news.
INTERVAL = 30.0


async def report(spool: Spool, matcher: Matcher, control: ControlPlane) -> None:
    """Send reports, without end. The service counts the first report of a submission, so each may be repeated."""
    tries = 0
    while True:
        while batch := spool.finished(BATCH):
            try:
                await _send(batch, spool, control)
                tries = 0
            except CallError as error:
                tries += 1
                if tries in (1, 5) or tries % 30 == 0:
                    logger.warning("jobs are not reported, trying again", tries=tries, error=error)
                await asyncio.sleep(pause(tries))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL):
                await matcher.news.wait()
        matcher.news.clear()


async def _send(batch: Sequence[Submission], spool: Spool, control: ControlPlane) -> None:
    """Report the batch. If the service refuses it, report its halves, so that one report cannot hold up the others."""
    try:
        await control.report_jobs(batch)
    except CallError as error:
        if not isinstance(error, CallRefusedError) and error.code != TOO_LARGE:
            raise
        if len(batch) == 1:
            logger.warning("the report of a job is dropped", submission=batch[0].id, error=error)
        else:
            half = len(batch) // 2
            await _send(batch[:half], spool, control)
            await _send(batch[half:], spool, control)
            return
    for one in batch:
        spool.remove(one.id)
