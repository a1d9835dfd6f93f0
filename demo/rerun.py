"""Run two configurations of a component in turns, without a study, exactly as the agent would."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.components.schema import Component, Scalar
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import JobResult, JobSpec, Outcome
from trimtab_agent.runners.local import LocalRunner

BUILD_CACHE_BYTES = 2**30


class RerunError(Exception):
    """A configuration that worked in the study failed in a rerun."""


class Bench:
    """Runs one application of one component. `state` is the agent's state directory, whose builds are reused."""

    def __init__(self, file: Path, application: str, metric: str, state: Path) -> None:
        self._state = state
        self._component: Component = load(file, Generator(state / "generated"))
        self._application = application
        self._metric = metric

    def flags(self, configuration: Mapping[str, Scalar]) -> list[str]:
        """Return the flags that the configuration adds to the default's build command."""
        with TemporaryDirectory(prefix="trimtab-demo-") as folder:
            default, changed = (self._prepare(values, Path(folder)).build for values in ({}, configuration))
        assert default is not None
        assert changed is not None
        plain = list(default.commands[0])
        return [item for item in changed.commands[0] if item not in plain and item != f"{changed.entry}/work"]

    def pairs(
        self, configuration: Mapping[str, Scalar], count: int, seconds: float, least: int, each: Callable[[], None]
    ) -> list[tuple[float, float]]:
        """Return (default, configuration) values of the metric from pairs of runs, in alternating order.

        There are `count` pairs, or as many as fit into `seconds`, but at least `least`. `each` is called after every
        pair. A first pair, which does not count, warms up the build cache and the machine.
        """
        found: list[tuple[float, float]] = []
        self._run({})
        self._run(configuration)
        end = monotonic() + seconds
        while len(found) < count and (len(found) < least or monotonic() < end):
            if len(found) % 2:
                best = self._run(configuration)
                found.append((self._run({}), best))
            else:
                default = self._run({})
                found.append((default, self._run(configuration)))
            each()
        return found

    def _run(self, configuration: Mapping[str, Scalar]) -> float:
        with TemporaryDirectory(prefix="trimtab-demo-") as folder:
            result = asyncio.run(_submit(Path(folder), self._prepare(configuration, Path(folder))))
        if result.outcome is not Outcome.COMPLETED:
            raise RerunError(f"a run of {dict(configuration) or 'the default'} ended {result.outcome}: {result.reason}")
        return result.metrics[self._metric]

    def _prepare(self, configuration: Mapping[str, Scalar], folder: Path) -> JobSpec:
        work = folder / "work"
        work.mkdir(exist_ok=True)
        return prepare(
            self._component,
            self._application,
            dict(configuration),
            title="rerun",
            required=[self._metric],
            timeout=0,
            work=work,
            cache=self._state / "builds",
            cache_limit=BUILD_CACHE_BYTES,
        )


async def _submit(folder: Path, spec: JobSpec) -> JobResult:
    runner = LocalRunner()
    try:
        await runner.submit(folder, spec)
        return await runner.wait(folder)
    except asyncio.CancelledError:  # Ctrl-C: the job would continue without this process
        await runner.cancel(folder)
        raise
    finally:
        runner.close()
