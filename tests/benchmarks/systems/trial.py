"""Single runs of a system, by the code of the agent: its build, its command, its metrics and its time-outs.

As a program it is the script of another optimiser's environment:

    python -m tests.benchmarks.systems.trial SYSTEM STATE LOG PARAMETERS.json RESULT.csv

It ends with 1 if the run has failed or has broken a limit. The log keeps all runs.
"""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from service.core.parameters import BoolParameter, CategoricalParameter, OrdinalParameter
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from tests.benchmarks.systems.systems import SYSTEMS, System
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import JobResult, Outcome
from trimtab_agent.runners.local import LocalRunner
from trimtab_components.schema import as_text

# A run that the machine has made fail is repeated, as a service does.
ATTEMPTS = 3
CACHE_BYTES = 4 << 30


@dataclass(frozen=True)
class Run:
    """One run. `interference` is what the agent measured of other processes; None where it did not run."""

    params: Configuration
    outcome: str
    reason: str
    metrics: Mapping[str, float]
    seconds: float
    interference: Mapping[str, Any] | None = None

    def value(self, problem: Problem) -> float | None:
        """Return the value of the objective; None if the run failed or broke a limit."""
        if self.outcome != Outcome.COMPLETED or not problem.acceptable(self.metrics):
            return None
        return self.metrics[problem.metrics[0]]

    def is_broken(self, problem: Problem) -> bool:
        """Return whether the run was complete and broke a limit."""
        return self.outcome == Outcome.COMPLETED and not problem.acceptable(self.metrics)

    def to_line(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(asdict(self)) + "\n"


class Trials:
    """Runs of a system, one after the other, while a `with` statement does. `state` keeps builds between programs."""

    def __init__(self, system: System, state: Path) -> None:
        self.system, self.state = system, state.absolute()
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        self.state.mkdir(parents=True, exist_ok=True)
        self._runner = LocalRunner()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()
        self._loop.close()

    def run(self, params: Configuration, application: str | None = None) -> Run:
        """Return a run with these values, of the study's application if none is named.

        A configuration that the constraints exclude is not started.
        """
        space = self.system.problem.space
        if not space.feasible(params):
            return Run(params, Outcome.INFEASIBLE, "the constraints exclude it", {}, 0.0)
        for _ in range(ATTEMPTS):
            result = self._once(params, application or self.system.study["application"])
            if result.outcome is not Outcome.FAILED:
                break
        return Run(params, result.outcome, result.reason, result.metrics, result.elapsed, result.interference)

    def _once(self, params: Configuration, application: str) -> JobResult:
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.state))
        try:
            work = folder / "work"
            work.mkdir()
            spec = prepare(
                self.system.loaded,
                application,
                params,
                title=self.system.name,
                required=self.system.problem.needed_metrics,
                timeout=0,
                work=work,
                cache=self.state / "builds",
                cache_limit=CACHE_BYTES,
            )

            async def waited() -> JobResult:
                await self._runner.submit(folder, spec)
                return await self._runner.wait(folder)

            return self._loop.run(waited())
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def decoded(problem: Problem, given: Mapping[str, Any]) -> Configuration:
    """Return the configuration that another optimiser names: an ordinal value by its rank, a choice by its text."""
    found: dict[str, Scalar] = {}
    for one in problem.space.parameters:
        value = given[one.name]
        match one:
            case OrdinalParameter():
                found[one.name] = one.values[int(value)]
            case CategoricalParameter():
                found[one.name] = next(known for known in one.values if as_text(known) == value)
            case BoolParameter():
                found[one.name] = value == "true"
            case _:
                found[one.name] = one.cast(value)
    return problem.space.prune(found)


def main(name: str, state: str, log: str, parameters: str, result: str) -> int:
    """Run the system once, as the docstring of the module says; return the exit status."""
    system = SYSTEMS[name]
    with Trials(system, Path(state)) as trials:
        run = trials.run(decoded(system.problem, json.loads(Path(parameters).read_text())))
    with Path(log).open("a") as to:
        to.write(run.to_line())
    value = run.value(system.problem)
    if value is None:
        print(f"{run.outcome}: {run.reason or 'a limit is broken'}", file=sys.stderr)
        return 1
    Path(result).write_text(f"score\n{value!r}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
