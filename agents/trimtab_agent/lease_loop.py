"""Acquire leases whenever a slot is free."""

import asyncio

from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.errors import CallError
from trimtab_agent.journal import LEAST_FREE, Journal
from trimtab_agent.logger import Logger
from trimtab_agent.trial_runner import TrialRunner

logger = Logger(__name__)

# Seconds that the service may hold one call: long enough to cost little, short enough for proxies that close idle
# connections.
WAIT = 20.0
# Seconds between two checks of a full disk.
SPACE_INTERVAL = 5.0


async def acquire(control: ControlPlane, trials: TrialRunner, journal: Journal) -> None:
    """Acquire leases and start their trials, without end.

    A slot is free as soon as its trial's processes have ended: the agent asks for the next lease while it records and
    reports the last result.
    """
    failures = 0
    while True:
        free = await trials.free_slots()
        if not journal.has_space():
            logger.error(
                "the disk is full, no further trial starts until there is enough space",
                folder=journal.state,
                least_free_mib=LEAST_FREE >> 20,
            )
            await asyncio.sleep(SPACE_INTERVAL)
            continue
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            leases = await control.acquire(free, WAIT, trials.held())
        except CallError as error:
            failures += 1
            if failures in (1, 5) or failures % 30 == 0:
                logger.warning("no leases can be acquired, trying again", tries=failures, error=error)
            await asyncio.sleep(pause(failures))
            continue
        failures = 0
        for lease in leases:
            trials.start(lease)
        if not leases:
            # A service that is about to stop answers early. The pause avoids a tight loop.
            await asyncio.sleep(max(0.0, 0.5 - (loop.time() - asked)))
