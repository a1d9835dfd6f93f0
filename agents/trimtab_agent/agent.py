"""The daemon: puts the parts together, starts the loops, and takes them down."""

import asyncio
import logging
import signal
import uuid

from trimtab_agent import heartbeat, lease_loop, offering, renewal
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.credentials import Credentials, Enrolled
from trimtab_agent.dry_runs import DryRuns
from trimtab_agent.errors import CallError
from trimtab_agent.installed import Installed
from trimtab_agent.journal import Journal, place
from trimtab_agent.lease import Settlement
from trimtab_agent.runners.base import Outcome, Runner
from trimtab_agent.trial_runner import TrialRunner

logger = logging.getLogger(__name__)

# seconds that a stopping agent takes to tell the service what it gives back; ending the trials comes before and takes
# one or two
FAREWELL = 2.0


async def serve(
    config: Config, installed: Installed, journal: Journal, runner: Runner, credentials: Credentials
) -> None:
    """Runs until SIGTERM or SIGINT, then ends every trial, gives their leases back and returns.

    Raises:
        CredentialsError: the token or the enrolment is not accepted at the start.
        CallRefusedError: the service does not accept the registration.
        ConfigError: the policy leaves nothing to offer.
    """
    offered = list(config.policy.offered(installed.components).values())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    session = f"{place()}:{uuid.uuid4().hex}"
    async with ControlPlane(config, journal.agent_id(), session, offered, credentials) as control:
        trials = TrialRunner(config, installed, journal, runner, control)
        for entry in journal.entries():
            trials.resume(entry)
        dry_runs = DryRuns(config, installed, journal, runner, control.answer_dry_run)
        work = asyncio.create_task(_work(config, installed, journal, control, trials, dry_runs, credentials))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            stopping.cancel()
            # what runs goes on under its supervisors, for the next start
            await work
        logger.info("stopping: running trials are ended and given back")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await _return_unseen(control, trials)
        await trials.shut_down(FAREWELL)
        runner.close()


async def _work(
    config: Config,
    installed: Installed,
    journal: Journal,
    control: ControlPlane,
    trials: TrialRunner,
    dry_runs: DryRuns,
    credentials: Credentials,
) -> None:
    if config.enrol is not None and isinstance(credentials, Enrolled) and not credentials.came_with(config.enrol):
        await control.enrol(config.enrol, credentials)
        logger.info("enrolled")
    interval = await control.register()
    await _confirm(control, trials)
    offered = ",".join(config.policy.offered(installed.components))
    print(f"ready agent={config.name} slots={config.slots} components={offered}", flush=True)
    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(heartbeat.beat(control, trials, dry_runs, interval))
            if isinstance(credentials, Enrolled):
                loops.create_task(renewal.keep(control, credentials))
            loops.create_task(lease_loop.acquire(control, trials, journal))
            loops.create_task(offering.follow(installed, config.policy, control))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def _confirm(control: ControlPlane, trials: TrialRunner) -> None:
    """Learns which of the leases of an earlier process are still this agent's."""
    tries = 0
    while trials.held():
        try:
            renewal = await control.renew(trials.held())
        except CallError as error:
            tries += 1
            logger.warning("%s; trying again", error)
            await asyncio.sleep(pause(tries))
            continue
        for lease, reason in renewal.cancel.items():
            trials.cancel(lease, reason)
        for lease in renewal.lost:
            trials.lose(lease)
        break
    trials.confirm()


async def _return_unseen(control: ControlPlane, trials: TrialRunner) -> None:
    """Gives back what the service granted in an answer that this process, stopping, no longer read."""
    try:
        async with asyncio.timeout(1.0):
            for lease in await control.acquire(0, 0, trials.held()):
                await control.settle(lease.id, Settlement(Outcome.RELEASED, "the agent was stopped"))
    except (CallError, TimeoutError) as error:
        logger.info("leases that were on their way expire by themselves: %s", error or "no answer")
