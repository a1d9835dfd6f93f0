"""The checks in their order, each in a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from service.doctor import broker, database, endpoints, folder, issuer
from service.doctor.findings import Deployment, Finding, Level, one_line, problem, warning


@dataclass(frozen=True, slots=True)
class _Check:
    run: Callable[[Deployment], Finding]
    # Without this one it would only report the same fault again.
    needs: str = ""
    embedded_only: bool = False


CHECKS: Mapping[str, _Check] = {
    "data folder": _Check(folder.modes, embedded_only=True),
    "disk": _Check(folder.disk, embedded_only=True),
    "database": _Check(database.answers),
    "migrations": _Check(database.migrations, "database"),
    "tenants": _Check(database.rows, "database"),
    "clock": _Check(database.clock, "database"),
    "broker": _Check(broker.answers),
    "beat": _Check(broker.beat, "broker"),
    "workers": _Check(database.workers, "database"),
    "console": _Check(endpoints.console),
    "grpc": _Check(endpoints.grpc_port),
    "certificates": _Check(endpoints.certificates),
    "sign-in": _Check(issuer.answers),
}


def examine(deployment: Deployment) -> Iterator[tuple[str, Finding]]:
    """Yield the name of each check with its finding."""
    failed = set()
    for name, check in CHECKS.items():
        if check.embedded_only and deployment.data is None:
            continue
        if check.needs in failed:
            finding = warning(f"not checked, because the {check.needs} has a problem", "repair that first")
        else:
            finding = _bounded(check.run, deployment)
        if finding.level is Level.PROBLEM:
            failed.add(name)
        yield name, finding


def _bounded(run: Callable[[Deployment], Finding], deployment: Deployment) -> Finding:
    """Return the finding of a check, which is a problem if the check takes too long or fails."""
    found: list[Finding] = []

    def work() -> None:
        try:
            found.append(run(deployment))
        except Exception as error:  # noqa: BLE001 - a check that fails must not hide the others
            text = f"the check failed: {type(error).__name__}: {one_line(error)}"
            found.append(problem(text, "see the logs of the service"))

    # The thread of a check that hangs does not keep this process alive.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(deployment.seconds)
    if not found:
        return problem(f"no answer within {deployment.seconds:g} s", "see whether this machine or the network is busy")
    return found[0]
