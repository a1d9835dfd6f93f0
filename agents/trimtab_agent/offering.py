"""The loop that offers what is installed while the agent runs."""

import asyncio
import logging

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError, ComponentError, ConfigError
from trimtab_agent.installed import Installed
from trimtab_agent.policy import Policy

logger = logging.getLogger(__name__)

# seconds between two looks at the component files
INTERVAL = 3.0


async def follow(installed: Installed, policy: Policy, control: ControlPlane) -> None:
    """Follows the component files for ever. Of files with faults it tells, and offers what it did before."""
    while True:
        await asyncio.sleep(INTERVAL)
        # In threads: files may be on a slow file system, and a component's program may list its parameters.
        if not await asyncio.to_thread(installed.changed):
            continue
        try:
            await asyncio.to_thread(installed.renew, policy)
        except (ComponentError, ConfigError) as error:
            logger.warning("component files were changed and are not used: %s", error)
            continue
        offered = policy.offered(installed.components)
        logger.info("component files were changed; offered are %s", ", ".join(offered))
        try:
            await control.offer(list(offered.values()))
        except CallError as error:
            logger.warning("%s; the agent says what it offers when it registers again", error)
