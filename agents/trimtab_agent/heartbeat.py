"""Renews the leases, and passes on what the service answers."""

import asyncio
import logging

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError
from trimtab_agent.trial_runner import TrialRunner

logger = logging.getLogger(__name__)


async def beat(control: ControlPlane, trials: TrialRunner, interval: float) -> None:
    """Renews every lease once per `interval` seconds, for ever. While the service is away trials go on: it decides
    later what their results are worth."""
    while True:
        await asyncio.sleep(interval)
        try:
            renewal = await control.renew(trials.held(), await trials.elapsed())
        except CallError as error:
            logger.warning("%s; trials go on", error)
            continue
        for lease, reason in renewal.cancel.items():
            trials.cancel(lease, reason)
        for lease in renewal.lost:
            trials.lose(lease)
