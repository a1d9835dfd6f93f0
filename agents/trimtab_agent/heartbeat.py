"""Renew the leases and act on the service's answers."""

import asyncio

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.dry_runs import DryRuns
from trimtab_agent.errors import CallError
from trimtab_agent.logger import Logger
from trimtab_agent.orders import Orders
from trimtab_agent.trial_runner import TrialRunner

logger = Logger(__name__)

# Seconds until the next heartbeat after an answer that named something to do: there may be more. The pause doubles, up
# to the usual interval, while the service repeats the same items, which are in progress.
SHORTEST_PAUSE = 0.2
# An agent without leases sends half as many heartbeats, because most agents of a large site have no trial. A lease that
# it gets meanwhile lasts longer than that.
IDLE = 2.0
# The pause between two heartbeats as a share of the time without the service after which a trial of a live system ends.
SHARE_OF_AWAY = 0.3


async def beat(control: ControlPlane, trials: TrialRunner, dry_runs: DryRuns, orders: Orders, interval: float) -> None:
    """Renew every lease once per `interval` seconds, without end; without leases each `IDLE` intervals.

    The service holds each heartbeat for that long and answers as soon as a trial must stop or somebody asks for a dry
    run or a component. While the service is away, trials continue, and it decides later what their results are worth.
    Trials of live systems end after a time without an answer (`TrialRunner.heard`). If that time is short, so are all
    pauses, also while no trial runs: the first one may begin in such a pause.
    """
    loop = asyncio.get_running_loop()
    reported: set[str] = set()
    pause = SHORTEST_PAUSE
    while True:
        began, held = loop.time(), trials.held()
        longest = SHARE_OF_AWAY * trials.shortest_away()
        usual = min(interval, longest)
        seconds = usual if held else min(IDLE * interval, longest)
        try:
            renewal = await control.renew(held, await trials.elapsed(), trials.waiting(), wait=seconds)
        except CallError as error:
            logger.warning("a heartbeat has failed, trials continue", error=error)
            await asyncio.sleep(usual)
            continue
        trials.heard()
        for lease, reason in renewal.cancel.items():
            trials.cancel(lease, reason)
        for lease in renewal.lost:
            trials.lose(lease)
        for asked in renewal.dry_runs:
            dry_runs.start(asked)
        for order in renewal.orders:
            orders.start(order)
        named = {*renewal.cancel, *renewal.lost, *(asked.id for asked in renewal.dry_runs)}
        named |= {order.id for order in renewal.orders}
        pause = min(usual, pause * 2) if named <= reported else SHORTEST_PAUSE
        reported = named
        # Keep the interval even if the service does not hold the heartbeat.
        await asyncio.sleep(pause if named else max(0.0, began + seconds - loop.time()))
