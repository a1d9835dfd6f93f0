"""Make studies with each kind of verdict in a service that runs: `-m tests.factories.verdict_studies DATA KIND ...`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from service.embedded import running
from tests.factories.service import EmbeddedService


def name_of(kind: str) -> str:
    """Return the name of the study of this kind."""
    return f"verdict-of-{kind}"


def make_studies(service: EmbeddedService, kinds: Sequence[str]) -> None:
    """Make studies in the default tenant of a service, from a process that has its settings."""
    subprocess.run([sys.executable, "-m", __name__, str(service.data_dir), *kinds], check=True)


def main(data: str, *kinds: str) -> None:
    """Make the studies of these kinds, one after the other."""
    running.enter(Path(data))
    django.setup()
    from service.results import summaries
    from service.tenancy.models import Tenant
    from service.tenancy.principal import Principal, Role
    from tests.factories.fleet import study
    from tests.factories.verdicts import make_study

    principal = Principal(Tenant._default_manager.get(slug="default").pk, "administrator", Role.ADMIN)
    for kind in kinds:
        summaries.summarise(principal, study(principal, make_study(principal, kind, name_of(kind))).pk)


if __name__ == "__main__":
    main(*sys.argv[1:])
