"""Studies on an agent whose trials run to the end, with and without a gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from service.core.space import Scalar
from service.fleet import runs
from service.matching import records
from service.matching.models import Record
from service.planning.create import create_study
from service.tenancy.principal import Principal
from tests.factories.domain import make_execution, study_name
from tests.factories.fleet import AGENT, acquire, register, settle, study
from tests.unit.trials.policies.calls import with_default

Seconds = Callable[[Mapping[str, Scalar]], float]
_noise = count()


def faster(params: Mapping[str, Scalar]) -> float:
    """Return 10 s for the default (x 0.5) and below, 8 s above, with a little noise."""
    return (8.0 if float(params["x"]) > 0.5 else 10.0) + 0.01 * (next(_noise) % 7)


def equal(params: Mapping[str, Scalar]) -> float:
    """Return 10 s for all, with a little noise."""
    return 10.0 + 0.01 * (next(_noise) % 7)


def start(principal: Principal, name: str = "", **spec: Any) -> str:
    """Create a study on an agent with six trials and a final check of at most twelve, and return its name."""
    register(principal)
    wanted = {"budget": {"max_trials": 6}, "final_check": {"max_trials": 12, "effects": 0}, **spec}
    made = with_default(execution=make_execution(parallelism=1), **wanted)
    return create_study(principal, name or study_name(), made).name


def run_to_the_end(principal: Principal, name: str, seconds: Seconds = faster) -> None:
    """Run the trials of a study, each with its command line, until it has ended."""
    while study(principal, name).state == "ACTIVE":
        (grant,) = acquire(principal)
        argv = ["/opt/ant/bin/ant", f"--x={grant.params['x']}", "--grid", "64"]
        runs.report_started(
            principal,
            agent_id=AGENT,
            lease=grant.lease,
            node="n1",
            invocation={
                "commands": [{"step": "header", "argv": ["module", "load"]}, {"step": "command", "argv": argv}],
                "scheduler_options": ["--partition=long", "-N", "4"],
            },
        )
        settle(principal, grant, seconds=seconds(grant.params))


def record_of(principal: Principal, name: str) -> Record:
    """Return the only record of a study."""
    (record,) = records.page(principal, study=name).items
    return record
