"""The loop that offers changed components while the agent runs."""

import asyncio

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError, ComponentError, ConfigError
from trimtab_agent.installed import Installed
from trimtab_agent.logger import Logger
from trimtab_agent.policy import Policy

logger = Logger(__name__)

# Seconds between two checks of the component files.
INTERVAL = 3.0


async def follow(installed: Installed, policy: Policy, control: ControlPlane) -> None:
    """Follow the component files, without end. Files with errors are logged and change nothing."""
    while True:
        await asyncio.sleep(INTERVAL)
        # This runs in threads because file systems may be slow and a component may run a program.
        if not await asyncio.to_thread(installed.changed):
            continue
        try:
            await asyncio.to_thread(installed.renew, policy)
        except (ComponentError, ConfigError) as error:
            logger.warning("the changed component files are not used", error=error)
            continue
        offered = policy.offered(installed.components)
        logger.info("component files have changed", components=", ".join(offered))
        try:
            await control.offer(list(offered.values()))
        except CallError as error:
            logger.warning("the changes are offered at the next registration", error=error)
