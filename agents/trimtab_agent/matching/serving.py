"""Application matching in the agent: the socket and the loops behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.installed import Installed
from trimtab_agent.logger import Logger
from trimtab_agent.matching import job_ends, reporting
from trimtab_agent.matching.matcher import Matcher
from trimtab_agent.matching.server import MatchServer, folder_remark
from trimtab_agent.matching.spool import Spool

logger = Logger(__name__)


@contextlib.asynccontextmanager
async def serving(config: Config, installed: Installed, control: ControlPlane) -> AsyncIterator[None]:
    """Answer submission hosts, and report how their jobs end, within the context.

    Raises:
        ConfigError: the socket cannot be made.
    """
    if config.match_socket is None:
        yield
        return
    spool = Spool(config.state / "matching")
    matcher = Matcher(config.policy, installed, control, spool)
    async with MatchServer(config.match_socket, matcher.answer, config.policy.matching.timeout):
        if remark := folder_remark(config.match_socket):
            logger.warning("other users could replace the socket for matching", reason=remark)
        logger.info("jobs are matched", socket=config.match_socket, mode=config.policy.matching.mode)
        loops = [
            asyncio.create_task(job_ends.follow(spool, matcher)),
            asyncio.create_task(reporting.report(spool, matcher, control)),
        ]
        for loop in loops:
            loop.add_done_callback(_log_failure)
        try:
            yield
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


def _log_failure(loop: asyncio.Task[None]) -> None:
    if not loop.cancelled() and (error := loop.exception()) is not None:
        logger.error("a loop of matching has ended", error=repr(error), exc_info=error)
