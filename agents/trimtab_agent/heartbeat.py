"""Renews the leases, and passes on what the service answers."""

import asyncio
import logging

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.dry_runs import DryRuns
from trimtab_agent.errors import CallError
from trimtab_agent.trial_runner import TrialRunner

logger = logging.getLogger(__name__)

# seconds until the next beat after one that has named something to do: there may be more of it. Doubled, up to the
# usual interval, while the service goes on to name the same, which is being done.
SHORTEST_PAUSE = 0.2


async def beat(control: ControlPlane, trials: TrialRunner, dry_runs: DryRuns, interval: float) -> None:
    """Renews every lease once per `interval` seconds, for ever. The service holds each beat that long and answers it as
    soon as a trial is to end or somebody asks what would be run. While the service is away trials go on: it decides
    later what their results are worth."""
    loop = asyncio.get_running_loop()
    told: set[str] = set()
    pause = SHORTEST_PAUSE
    while True:
        began = loop.time()
        try:
            renewal = await control.renew(trials.held(), await trials.elapsed(), trials.waiting(), wait=interval)
        except CallError as error:
            logger.warning("%s; trials go on", error)
            await asyncio.sleep(interval)
            continue
        for lease, reason in renewal.cancel.items():
            trials.cancel(lease, reason)
        for lease in renewal.lost:
            trials.lose(lease)
        for asked in renewal.dry_runs:
            dry_runs.start(asked)
        named = {*renewal.cancel, *renewal.lost, *(asked.id for asked in renewal.dry_runs)}
        pause = min(interval, pause * 2) if named <= told else SHORTEST_PAUSE
        told = named
        # a service that does not hold the beat is not to be asked more often
        await asyncio.sleep(pause if named else max(0.0, began + interval - loop.time()))
