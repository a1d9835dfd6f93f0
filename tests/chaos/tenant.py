"""Make a tenant with records in a service, and print its token: `python -m tests.chaos.tenant SLUG RECORDS`.

It runs with the environment of the service's processes.
"""

from __future__ import annotations

import sys

import django

# The longest command of a job.
COMMAND = 4096


def main(slug: str, records: int) -> None:
    """Make the tenant."""
    django.setup()
    from service.identity import tokens
    from service.tenancy.models import Tenant
    from service.tenancy.principal import Principal, Role
    from tests.factories.matching import make_job, make_record

    tenant = Tenant._default_manager.create(slug=slug)
    principal = Principal(tenant.pk, "mallory", Role.ADMIN)
    for number in range(records):
        command = f"/home/mallory/bin/ant{number % 40} " + "".join(f"--o{part}={number} " for part in range(600))
        job = make_job(name=f"ant_{number}", command_line=command[:COMMAND])
        make_record(principal, job=job, component=f"component{number % 5}")
    print(tokens.create(principal, name="attack", scopes=["admin"])[1])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
