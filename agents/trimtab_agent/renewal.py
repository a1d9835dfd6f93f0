"""Renew the agent's own credential long before it expires."""

import asyncio

from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.credentials import Enrolled
from trimtab_agent.errors import CallError, JournalError
from trimtab_agent.logger import Logger

logger = Logger(__name__)


async def keep(control: ControlPlane, enrolled: Enrolled) -> None:
    """Renew the credential whenever it is due, without end. After a failure, retry: days are left."""
    tries = 0
    while True:
        await asyncio.sleep(enrolled.due())
        if enrolled.due() > 0:
            continue
        try:
            await control.renew_credential(enrolled)
        except (CallError, JournalError) as error:
            tries += 1
            if tries in (1, 5) or tries % 30 == 0:
                logger.warning("the credential is not renewed, trying again", tries=tries, error=error)
            await asyncio.sleep(pause(tries))
        else:
            tries = 0
            logger.info("the credential is renewed")
