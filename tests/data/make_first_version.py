# mypy: ignore-errors
"""Fill a database with the code of the first version, and print its dump. Run by make_first_version.sh.

The modules that this file imports are those of the first version, not those of this checkout.
"""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

os.environ["DJANGO_SETTINGS_MODULE"] = "service.config.settings.test"

import django
from django.conf import settings
from django.core.management import call_command

from service.config.settings.base import database
from service.embedded.postgres import Postgres, _as_unprivileged, _programs
from service.embedded.processes import stop

SPACE = {
    "parameters": [
        {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.9},
        {"name": "n", "type": "int", "min": 1, "max": 16, "default": 2},
        {"name": "mode", "type": "categorical", "values": ["sync", "async"], "default": "sync"},
    ],
    "constraints": ["n <= 12"],
}
SECONDS = {"metric": "seconds", "goal": "minimize"}
RATE = {"metric": "rate", "goal": "maximize"}


def main() -> None:
    """Start PostgreSQL, make the data, and write the dump to the standard output."""
    server = Postgres(Path(sys.argv[1]), {"fsync": "off"})
    server.prepare()
    child = server.child(Path(sys.argv[1] + ".log"))
    child.start()
    try:
        server.wait_until_ready(child, 60)
        server.ensure_database("trimtab")
        settings.DATABASES["default"] = database(server.url("trimtab"))
        django.setup()
        call_command("migrate", verbosity=0)
        make()
        program = [*_as_unprivileged(), str(_programs() / "pg_dump"), "--no-owner", "--no-privileges"]
        sys.stdout.flush()
        subprocess.run([*program, server.url("trimtab")], check=True)
    finally:
        stop([child])


def make() -> None:
    """Make two tenants with studies in every state, trials in every state, operations, agents and leases."""
    from service.pipeline import compute, queue, report, studies, suggest

    from service.studies.models import Operation
    from service.tenancy import access
    from service.tenancy.models import Tenant
    from service.tenancy.principal import ADMIN, Principal

    queue.enqueue = lambda operation_id: None
    first = Principal(Tenant._default_manager.get(slug="default").pk, "admin", frozenset({ADMIN}))
    second = Principal(Tenant._default_manager.create(slug="acme").pk, "alice", frozenset({ADMIN}))

    def spec(algorithm: str, **changes: object) -> dict[str, object]:
        return {
            "space": SPACE,
            "objectives": [SECONDS],
            "algorithm": {"name": algorithm, "options": {}},
            "seed": 1,
            **changes,
        }

    def seconds(params: dict[str, object]) -> float:
        return 1 + (params["x"] - 0.3) ** 2 + 0.05 * abs(params["n"] - 8) + 0.2 * (params["mode"] == "sync")

    def ask(principal: Principal, study: str, count: int) -> list[object]:
        detail = suggest.suggest(principal, study, count=count, client_id="script")
        while (pending := access.rows(Operation, principal).filter(state="PENDING").first()) is not None:
            compute.compute(pending.id)
        return detail.trials or list(suggest.selectors.get_operation(principal, detail.operation.id).trials)

    for principal in (first, second):
        for algorithm in ("random", "sobol", "lhs", "grid", "gp"):
            name = f"{algorithm}-study"
            changes = {}
            if algorithm == "grid":
                changes["space"] = {"parameters": SPACE["parameters"][1:], "constraints": []}
            studies.create_study(principal, name, spec(algorithm, budget={"max_trials": 40}, **changes))
            for trial in (one for _ in range(3) for one in ask(principal, name, 4)):
                report.report_measurement(principal, name, trial.number, step=1, metrics={"seconds": 9.0})
                value = seconds({"x": 0.3, **trial.params})
                report.complete_trial(principal, name, trial.number, metrics={"seconds": value})
        # one trial in each state
        infeasible, failed, stopped, _active = ask(principal, "random-study", 4)
        report.fail_trial(principal, "random-study", infeasible.number, infeasible=True, reason="out of memory")
        report.fail_trial(principal, "random-study", failed.number, infeasible=False, reason="the node is gone")
        report.stop_trial(principal, "random-study", stopped.number, reason="too slow")
        report.add_trial(principal, "gp-study", params={"x": 0.5, "n": 4, "mode": "async"}, metrics={"seconds": 1.3})
        studies.create_study(principal, "two-objectives", spec("random", objectives=[SECONDS, RATE]))
        for number, trial in enumerate(ask(principal, "two-objectives", 5)):
            report.complete_trial(
                principal, "two-objectives", trial.number, metrics={"seconds": 1.0 + number, "rate": 2.0 * number}
            )
        for name, state in (("paused", "PAUSED"), ("completed", "COMPLETED"), ("aborted", "ABORTED")):
            studies.create_study(principal, name, spec("random"))
            ask(principal, name, 2)
            studies.update_state(principal, name, state, reason="for the test")
        studies.create_study(principal, "deleted", spec("random"))
        studies.delete_study(principal, "deleted")
        on_agents(principal, spec)
        # an operation that no worker has begun
        suggest.suggest(principal, "gp-study", count=2, client_id="waiting")


def on_agents(principal: object, spec: object) -> None:
    """Make an agent, and a study with leases that are held, settled and given back."""
    from service.pipeline import studies

    from service.fleet import agents, leases

    component = {"name": "compiler", "digest": "d1", "applications": ["small"], "space": [], "metrics": ["seconds"]}
    agents.register(
        principal,
        agent_id="agent-1",
        name="node-1",
        version="0.1.0",
        slots=4,
        labels={"rack": "a"},
        components=[component],
        session_id=uuid4().hex,
    )
    execution = {"component": "compiler", "digest": "", "application": "small", "parallelism": 3}
    studies.create_study(principal, "on-agents", spec("random", execution=execution, budget={"max_trials": 20}))
    done, broken, _held = leases.acquire(principal, agent_id="agent-1", count=3)
    for grant in (done, broken):
        leases.report_started(principal, agent_id="agent-1", lease=grant.lease, node="n1")
    leases.append_log(principal, agent_id="agent-1", lease=done.lease, offset=0, data=b"$ compile\nvalue=2.5\n")
    leases.settle(principal, agent_id="agent-1", lease=done.lease, outcome="completed", metrics={"seconds": 2.5})
    leases.settle(principal, agent_id="agent-1", lease=broken.lease, outcome="failed", reason="disk full")


if __name__ == "__main__":
    main()
