"""Carry out what people ask in the service for the components of this agent."""

import asyncio

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import AgentError, CallError
from trimtab_agent.installed import Installed
from trimtab_agent.installing import Installer
from trimtab_agent.lease import ComponentOrder
from trimtab_agent.logger import Logger
from trimtab_agent.policy import Policy
from trimtab_agent.trial_runner import TrialRunner

logger = Logger(__name__)


class Orders:
    """Carries out one order after the other."""

    def __init__(
        self, installer: Installer, installed: Installed, trials: TrialRunner, policy: Policy, control: ControlPlane
    ) -> None:
        self._installer = installer
        self._installed = installed
        self._trials = trials
        self._policy = policy
        self._control = control
        self._one_at_a_time = asyncio.Lock()
        self._at_work: dict[str, asyncio.Task[None]] = {}

    def start(self, order: ComponentOrder) -> None:
        """Carry out an order in the background. A repetition of one in progress changes nothing."""
        if order.id not in self._at_work:
            task = self._at_work[order.id] = asyncio.create_task(self._carry_out(order), name=f"order {order.id}")
            task.add_done_callback(lambda _: self._at_work.pop(order.id, None))

    async def _carry_out(self, order: ComponentOrder) -> None:
        async with self._one_at_a_time:
            code, message = "", ""
            try:
                change = self._installer.install if order.install else self._installer.remove
                await asyncio.to_thread(change, order.component, busy=self._trials.runs(order.component))
                await asyncio.to_thread(self._installed.renew, self._policy)
                await self._control.offer(list(self._policy.offered(self._installed.components).values()))
            except CallError as error:
                # The service repeats the order, which then finds its work done.
                logger.warning("an order is not answered", component=order.component, error=error)
                return
            except AgentError as error:
                code, message = error.code, str(error)
            except Exception as error:
                logger.exception("an order has failed", component=order.component)
                code, message = "agent_failed", f"the agent failed: {type(error).__name__}: {error}"
            logger.info("order", component=order.component, install=order.install, refused=code)
            try:
                await self._control.answer_order(order.id, code, message)
            except CallError as error:
                logger.info("an order is not answered", component=order.component, error=error)
