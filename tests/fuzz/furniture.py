"""Put what a tenant has into a service that runs: `python -m tests.fuzz.furniture DATA SIZE`.

It prints what it has made as JSON. It runs in a process of its own, which has the settings of the service. The tenant
`default` gets people and their tokens, a study with each kind of verdict, records with jobs, and notifications. Another
tenant gets a row in every table; none of its words may ever be in an answer to somebody of `default`.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import django

from service.embedded import running

# The kinds of verdicts of `tests/factories/verdicts.py` that studies have, and the numbers of records, by size.
SIZES: dict[str, tuple[tuple[str, ...], int]] = {
    "small": (("proven", "pareto"), 5),
    "large": (
        ("proven", "pareto", "context", "limits", "breaks", "none", "failed", "penalties", "pruned", "provisional"),
        400,
    ),
}


@dataclass(frozen=True)
class Furniture:
    """Tokens by role, names of finished studies by kind, ids of records, and ids and secret words of another tenant."""

    tokens: dict[str, str]
    studies: dict[str, str]
    records: list[str]
    foreign: list[str]
    secrets: list[str]


def main(data: str, size: str) -> None:
    """Make everything and print it."""
    running.enter(Path(data))
    django.setup()
    print(json.dumps(asdict(_furnish(size))))


def _furnish(size: str) -> Furniture:
    from service.identity import memberships, tokens
    from service.identity.oidc import Identity, Proof
    from service.matching import jobs
    from service.results import summaries
    from service.tenancy.models import Tenant
    from service.tenancy.principal import Principal, Role
    from tests.factories.fleet import study
    from tests.factories.furnished import AGENT, ON_AGENTS, SECRET, STUDY, furnish
    from tests.factories.matching import make_job, make_record, make_report
    from tests.factories.verdicts import make_study

    kinds, count = SIZES[size]
    other = furnish()
    tenant = Tenant._default_manager.get(slug="default").pk
    admin = Principal(tenant, "adele", Role.ADMIN)
    secrets = {}
    for role, name, scopes in (
        (Role.VIEWER, "vera", ("read", "admin")),
        (Role.MEMBER, "milan", ("read", "tune", "admin")),
        (Role.ADMIN, "adele", ("read", "tune", "agent", "admin")),
    ):
        subject = uuid4().hex
        proof = Proof(subject, name, "", int(time.time()), 0)
        memberships.note(Identity(proof, {"default": role}, operator=False))
        person = Principal(tenant, name, role, subject=subject)
        _, secrets[str(role)] = tokens.create(person, name="fuzz", scopes=scopes)
    studies = {}
    for kind in kinds:
        studies[kind] = make_study(admin, kind, f"verdict-{kind}")
        summaries.summarise(admin, study(admin, studies[kind]).pk)
    records = []
    for number in range(count):
        command = f"/home/ada/bin/ant{number % 9} " + "--opt=value " * (340 if count > 9 else 1)
        job = make_job(user=f"user{number % 7}", name=f"ant_{number}", command_line=command[:4096])
        records.append(make_record(admin, job=job, component=f"component{number % 5}"))
    for record in records[:5]:
        jobs.report(admin, [make_report(record, decision) for decision in ("APPLIED", "CONTROL")])
    ids: list[Any] = [other.operation, other.lease, other.token, other.artifact, other.record, other.channel]
    return Furniture(
        secrets,
        studies,
        [str(record.pk) for record in records],
        [*map(str, ids), STUDY, ON_AGENTS, AGENT],
        # A name that a request has may be in its refusal; these words are in no request.
        [SECRET, f"{AGENT}-label"],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
