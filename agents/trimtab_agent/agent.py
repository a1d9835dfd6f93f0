"""The daemon: it connects the parts, starts the loops and stops them."""

import asyncio
import signal
import uuid

from trimtab_agent import heartbeat, lease_loop, live_reporter, offering, renewal
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane, pause
from trimtab_agent.credentials import Credentials, Enrolled
from trimtab_agent.dry_runs import DryRuns
from trimtab_agent.errors import CallError
from trimtab_agent.installed import Installed
from trimtab_agent.installing import Installer
from trimtab_agent.journal import Journal, host_id
from trimtab_agent.lease import Settlement
from trimtab_agent.logger import Logger
from trimtab_agent.matching.serving import serving
from trimtab_agent.orders import Orders
from trimtab_agent.runners.base import Outcome, Runner
from trimtab_agent.trial_runner import TrialRunner
from trimtab_components.terminal import write

logger = Logger(__name__)

# Seconds that a stopping agent takes to report which leases it gives back. Ending the trials before that takes another
# one or two seconds.
FAREWELL = 2.0


async def serve(
    config: Config, installed: Installed, journal: Journal, runner: Runner, credentials: Credentials
) -> None:
    """Run until SIGTERM or SIGINT, then end every trial and give the leases back.

    Raises:
        CredentialsError: the service refuses the token or the enrolment at the start.
        CallRefusedError: the service refuses the registration.
        ConfigError: the policy allows none of the components, or the socket for submission hosts cannot be made.
    """
    offered = list(config.policy.offered(installed.components).values())
    for component, application, refusal in config.policy.refusals(installed.components):
        logger.warning(
            "the policy refuses all trials of an application",
            component=component,
            application=application,
            reason=refusal,
        )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    session = f"{host_id()}:{uuid.uuid4().hex}"
    installer = Installer(config.policy, installed)
    async with (
        ControlPlane(config, journal.agent_id(), session, offered, credentials, installer.components) as control,
        serving(config, installed, control),
    ):
        trials = TrialRunner(config, installed, journal, runner, control, credentials)
        for entry in journal.entries():
            trials.resume(entry)
        dry_runs = DryRuns(config, installed, journal, runner, control.answer_dry_run)
        orders = Orders(installer, installed, trials, config.policy, control)
        work = asyncio.create_task(_work(config, installed, journal, control, trials, dry_runs, orders, credentials))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            stopping.cancel()
            # The supervisors continue to run the trials for the next start.
            await work
        logger.info("stopping, the running trials are ended and their leases given back")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        if config.slots:
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
    orders: Orders,
    credentials: Credentials,
) -> None:
    if config.enrol is not None and isinstance(credentials, Enrolled) and not credentials.came_with(config.enrol):
        await control.enrol(config.enrol, credentials)
        logger.info("enrolled", agent=config.name)
    if config.slots == 0:
        # Without a registration the service gives it no trials.
        write(f"ready agent={config.name} slots=0 socket={config.match_socket}")
        await (renewal.keep(control, credentials) if isinstance(credentials, Enrolled) else asyncio.Event().wait())
        return
    interval = await control.register()
    await _confirm(control, trials)
    offered = ",".join(config.policy.offered(installed.components))
    write(f"ready agent={config.name} slots={config.slots} components={offered}")
    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(heartbeat.beat(control, trials, dry_runs, orders, interval))
            if isinstance(credentials, Enrolled):
                loops.create_task(renewal.keep(control, credentials))
            loops.create_task(lease_loop.acquire(control, trials, journal))
            loops.create_task(offering.follow(installed, config.policy, control))
            loops.create_task(live_reporter.follow(control, config.live_records, credentials))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def _confirm(control: ControlPlane, trials: TrialRunner) -> None:
    """Ask the service which leases of an earlier process this agent still holds."""
    tries = 0
    while trials.held():
        try:
            renewal = await control.renew(trials.held())
        except CallError as error:
            tries += 1
            logger.warning("the service does not answer a heartbeat, trying again", error=error)
            await asyncio.sleep(pause(tries))
            continue
        for lease, reason in renewal.cancel.items():
            trials.cancel(lease, reason)
        for lease in renewal.lost:
            trials.lose(lease)
        break
    trials.confirm()


async def _return_unseen(control: ControlPlane, trials: TrialRunner) -> None:
    """Give back leases that the service granted in an answer that this stopping process did not read."""
    try:
        async with asyncio.timeout(1.0):
            for lease in await control.acquire(0, 0, trials.held()):
                await control.settle(lease.id, Settlement(Outcome.RELEASED, "the agent was stopped"))
    except (CallError, TimeoutError) as error:
        logger.info("leases granted during the stop are not returned, they expire", error=str(error) or "no answer")
