"""Renews the agent's own credential long before it ends."""

import asyncio
import logging

from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.credentials import Enrolled
from trimtab_agent.errors import CallError, JournalError

logger = logging.getLogger(__name__)


async def keep(control: ControlPlane, enrolled: Enrolled) -> None:
    """Renews whenever that is due, for ever. What fails is tried again: the credential in use holds for days more."""
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
                logger.warning("%s; the credential is renewed later", error)
            await asyncio.sleep(pause(tries))
        else:
            tries = 0
            logger.info("the credential was renewed")
