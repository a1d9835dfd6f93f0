"""The command line of the checks. It imports Django only when it runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from service.backups import DataDir, data_folder
from service.doctor.findings import Deployment, Finding, Level, ok, one_line, problem, warning
from trimtab_components.terminal import without_passwords, write

SHORT_KEY = 32
# Any of these means that the environment describes the deployment.
HOSTED_VARIABLES = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "CELERY_BROKER_URL")


def doctor(
    data_dir: DataDir = None,
    console: Annotated[str, typer.Option(help="Address of the console. Embedded mode knows it.")] = "",
    grpc: Annotated[str, typer.Option(help="Address of gRPC, host:port. Embedded mode knows it.")] = "",
    tls_ca: Annotated[
        Path | None, typer.Option(help="PEM file of authorities to trust instead of the system's.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file of a certificate whose expiry is checked.")] = None,
    timeout: Annotated[float, typer.Option(min=1.0, max=300.0, help="Seconds for each check.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object on each line.")] = False,
) -> None:
    """Check a deployment, and say what is wrong and how to repair it. Exit status 1: there is a problem.

    Without --data-dir, and with DATABASE_URL in the environment, it checks the hosted deployment that the environment
    describes. Otherwise it checks the service that `up` runs. It changes nothing.

    Examples:

      trimtab-service doctor

      trimtab-service doctor --data-dir ./data --json

      trimtab-service doctor --console https://trimtab.example.org --grpc trimtab.example.org:443
    """
    worst = Level.OK
    for name, finding in _findings(data_dir, console, grpc, tls_ca, tls_cert, timeout):
        _show(name, finding, as_json)
        if finding.level is Level.PROBLEM:
            worst = Level.PROBLEM
    # Threads of checks that hang must not delay the end.
    os._exit(1 if worst is Level.PROBLEM else 0)


def _findings(
    data_dir: Path | None, console: str, grpc: str, tls_ca: Path | None, tls_cert: Path | None, seconds: float
) -> Iterator[tuple[str, Finding]]:
    os.environ.setdefault("TRIMTAB_LOG_LEVEL", "CRITICAL")
    data = None
    if data_dir is not None or not any(os.environ.get(name) for name in HOSTED_VARIABLES):
        data = data_folder(data_dir).expanduser().resolve()
        from service.embedded.running import NotRunning, enter

        try:
            running = enter(data)
        except NotRunning as error:
            yield "service", problem(str(error).rstrip("."), f"start it: trimtab-service up --data-dir {data}")
            return
        console, grpc = console or running["console"], grpc or running["grpc"]
    settings = _settings()
    yield "settings", settings
    if settings.level is Level.PROBLEM:
        return
    from service.doctor.examination import examine

    yield from examine(Deployment(data, console, grpc, tls_ca, tls_cert, seconds))


def _settings() -> Finding:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.hosted")
    import django
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except (ImproperlyConfigured, ValueError, OSError) as error:
        return problem(one_line(error), "set them as deploy/HOSTING.md says")
    if len(settings.SECRET_KEY) < SHORT_KEY:
        return warning(
            f"TRIMTAB_SECRET_KEY has {len(settings.SECRET_KEY)} characters", "use a random text: openssl rand -hex 32"
        )
    return ok(f"{os.environ['DJANGO_SETTINGS_MODULE']} is complete")


def _show(name: str, finding: Finding, as_json: bool) -> None:
    # The text may quote an error of a driver, and that the address of the database or the broker.
    text = without_passwords(finding.text)
    if as_json:
        write(json.dumps({"check": name, "level": finding.level, "text": text, "remedy": finding.remedy}))
        return
    remedy = f". To repair it: {finding.remedy}" if finding.remedy else ""
    write(f"{finding.level:<8} {name:<13} {text}{remedy}")
