"""Asks for work whenever a slot is free."""

import asyncio
import logging

from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.errors import CallError
from trimtab_agent.journal import ROOM, Journal
from trimtab_agent.trial_runner import TrialRunner

logger = logging.getLogger(__name__)

# seconds that one call is held open: long enough to cost nothing, short enough for proxies that close silent
# connections
WAIT = 20.0
# seconds between two looks at a disk that is full
ROOM_INTERVAL = 5.0


async def acquire(control: ControlPlane, trials: TrialRunner, journal: Journal) -> None:
    """Acquires leases and starts their trials, for ever.

    A slot is free from the moment its trial's processes have ended: the next lease is asked for while the last result
    is still being journalled and reported.
    """
    failures = 0
    while True:
        free = await trials.free_slots()
        if not journal.has_room():
            logger.error(
                "less than %d MiB are free in %s: no further trial is started until there is room",
                ROOM >> 20,
                journal.state,
            )
            await asyncio.sleep(ROOM_INTERVAL)
            continue
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            leases = await control.acquire(free, WAIT, trials.held())
        except CallError as error:
            failures += 1
            if failures in (1, 5) or failures % 30 == 0:
                logger.warning("%s; trying again", error)
            await asyncio.sleep(pause(failures))
            continue
        failures = 0
        for lease in leases:
            trials.start(lease)
        if not leases:
            # a service that is about to stop answers early
            await asyncio.sleep(max(0.0, 0.5 - (loop.time() - asked)))
