"""Answers what would be run: rendered as for a trial, by the same code, in a folder that goes again. Nothing is run."""

import asyncio
import logging
import shutil
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trimtab_agent import invocation
from trimtab_agent.config import Config
from trimtab_agent.errors import AgentError, CallError
from trimtab_agent.installed import Installed
from trimtab_agent.invocation import Invocation
from trimtab_agent.job import job_of
from trimtab_agent.journal import Journal
from trimtab_agent.lease import Lease
from trimtab_agent.runners.base import Runner

logger = logging.getLogger(__name__)

# trials of one question that are answered
MOST_TRIALS = 10
# in the place of a lease's identity, which a trial has only when it is granted
NO_LEASE = "lease-..."


@dataclass(frozen=True)
class DryRun:
    """A question of the service: what would be run for these?"""

    id: str
    trials: Sequence[Lease]


# what would be run, or the sentence that says why it would not
Rendered = Invocation | str
Answer = Callable[[str, Sequence[Rendered]], Awaitable[None]]


class DryRuns:
    """The questions that this agent answers."""

    def __init__(
        self,
        config: Config,
        installed: Installed,
        journal: Journal,
        runner: Runner,
        answer: Answer,
    ) -> None:
        """`answer`: tells the service."""
        self._config = config
        self._installed = installed
        self._journal = journal
        self._runner = runner
        self._answer = answer
        self._at_work: dict[str, asyncio.Task[None]] = {}

    def start(self, asked: DryRun) -> None:
        """Answers a question beside everything else; one that comes again while it is answered changes nothing."""
        if asked.id not in self._at_work:
            task = self._at_work[asked.id] = asyncio.create_task(self._live(asked), name=f"dry run {asked.id}")
            task.add_done_callback(lambda _: self._at_work.pop(asked.id, None))

    async def _live(self, asked: DryRun) -> None:
        try:
            trials = [await asyncio.to_thread(self._render, lease) for lease in asked.trials[:MOST_TRIALS]]
            await self._answer(asked.id, trials)
        except CallError as error:
            # it comes again with the next heartbeat, as long as somebody waits for it
            logger.info("a dry run is not answered: %s", error)

    def _render(self, lease: Lease) -> Rendered:
        if not self._config.policy.show_commands:
            return "The administrator of this cluster does not show command lines (rule show_commands)."
        # what a killed agent leaves there goes at its next start
        folder = self._journal.trash / f"dry-run-{uuid.uuid4().hex}"
        try:
            (folder / "work").mkdir(parents=True)
            spec = job_of(lease, self._config, self._installed.components, work=folder / "work", run=1)
            shown = invocation.of(spec, self._runner.script(folder, spec))
            return invocation.renamed(shown, str(folder), str(self._journal.leases / NO_LEASE))
        except (AgentError, OSError) as error:
            return str(error) or type(error).__name__
        except Exception as error:
            logger.exception("a dry run of %s", lease.component)
            return f"the agent failed: {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
