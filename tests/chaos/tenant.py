"""Make a tenant with many records in a service, and print an administrator's token: `python -m tests.chaos.tenant`.

It runs with the environment of the service's processes.
"""

from __future__ import annotations

import django

SLUG = "attacker"
RECORDS = 500
# The longest command of a job.
COMMAND = 4096


def main() -> None:
    """Make the tenant."""
    django.setup()
    from service.identity import tokens
    from service.tenancy.models import Tenant
    from service.tenancy.principal import Principal, Role
    from tests.factories.matching import make_job, make_record

    tenant = Tenant._default_manager.create(slug=SLUG)
    principal = Principal(tenant.pk, "mallory", Role.ADMIN)
    for number in range(RECORDS):
        command = f"/home/mallory/bin/ant{number % 40} " + "".join(f"--o{part}={number} " for part in range(600))
        job = make_job(name=f"ant_{number}", command_line=command[:COMMAND])
        make_record(principal, job=job, component=f"component{number % 5}")
    print(tokens.create(principal, name="attack", scopes=["admin"])[1])


if __name__ == "__main__":
    main()
