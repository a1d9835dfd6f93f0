"""Answer dry runs: render the commands as for a trial, with the same code, in a temporary folder, and run nothing."""

import asyncio
import shutil
import uuid
from collections.abc import Awaitable, Callable, Sequence

from trimtab_agent import invocation
from trimtab_agent.config import Config
from trimtab_agent.errors import AgentError, CallError
from trimtab_agent.installed import Installed
from trimtab_agent.invocation import Rendered
from trimtab_agent.job import job_of
from trimtab_agent.journal import Journal
from trimtab_agent.lease import DryRun, Lease
from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import Runner
from trimtab_components.errors import NotInComponentError, UnsuitableValueError

logger = Logger(__name__)

# Maximum number of trials in one answer.
MOST_TRIALS = 10
# Stands for the id of a lease, which a trial has only after the service grants it.
NO_LEASE = "lease-..."

Answer = Callable[[str, Sequence[Rendered]], Awaitable[None]]


class DryRuns:
    """Answers the service's dry runs."""

    def __init__(
        self,
        config: Config,
        installed: Installed,
        journal: Journal,
        runner: Runner,
        answer: Answer,
    ) -> None:
        """Create the object; `answer` sends an answer to the service."""
        self._config = config
        self._installed = installed
        self._journal = journal
        self._runner = runner
        self._answer = answer
        self._at_work: dict[str, asyncio.Task[None]] = {}

    def start(self, asked: DryRun) -> None:
        """Answer a dry run in the background. A repetition of one in progress changes nothing."""
        if asked.id not in self._at_work:
            task = self._at_work[asked.id] = asyncio.create_task(self._live(asked), name=f"dry run {asked.id}")
            task.add_done_callback(lambda _: self._at_work.pop(asked.id, None))

    async def _live(self, asked: DryRun) -> None:
        try:
            trials = [await asyncio.to_thread(self._render, lease) for lease in asked.trials[:MOST_TRIALS]]
            await self._answer(asked.id, trials)
        except CallError as error:
            # The service repeats it with the next heartbeat while somebody waits.
            logger.info("a dry run is not answered", dry_run=asked.id, error=error)

    def _render(self, lease: Lease) -> Rendered:
        if not self._config.policy.show_commands:
            return "The administrator of this cluster does not show command lines (rule show_commands)."
        # The next start of the agent removes what a killed agent leaves in the trash.
        folder = self._journal.trash / f"dry-run-{uuid.uuid4().hex}"
        try:
            (folder / "work").mkdir(parents=True)
            spec = job_of(lease, self._config, self._installed.components, work=folder / "work", run=1)
            shown = invocation.of(spec, self._runner.script(folder, spec))
            return invocation.renamed(shown, str(folder), str(self._journal.leases / NO_LEASE))
        except (AgentError, NotInComponentError, UnsuitableValueError, OSError) as error:
            return str(error) or type(error).__name__
        except Exception as error:
            logger.exception("a dry run has failed", component=lease.component)
            return f"the agent failed: {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
