"""`trimtab-service tenants`: commands with which an operator manages the tenants of an installation.

Like `service.main`, it imports Django only when a command runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.command_errors import CommandError
from trimtab_components.terminal import write

if TYPE_CHECKING:
    from service.tenancy.models import Tenant
    from service.tenancy.principal import Principal

app = typer.Typer(
    no_args_is_help=True,
    help="Manage the tenants of the installation. --data-dir selects a service that `up` runs; without it the commands"
    " use the database that the environment names, like the other commands.",
    epilog="Documentation: CONSOLE/docs/reference/commands.html#trimtab-service-tenants",
)

DataDir = Annotated[
    Path | None, typer.Option(help="Data folder of a service that `up` runs.", file_okay=False, show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
# These commands print JSON in any case. A script that gives the option to every command works with them, too.
IsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as without this option.")]
Slug = Annotated[str, typer.Argument(help="Short name of the tenant.", show_default=False)]
Limit = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=NUMBER, or NAME= for the installation's limit. Can be repeated."),
]


@app.command("list", epilog="Example: trimtab-service tenants list --data-dir ./data")
def list_tenants(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print all tenants, one on each line: slug, name, and `disabled`."""
    with _connected(data_dir):
        from service.tenancy import tenants

        every = list(tenants.every())
        if as_json:
            shown = [{"slug": one.slug, "name": one.name, "disabled": bool(one.disabled_at)} for one in every]
            write(json.dumps(shown, indent=2))
            return
        for tenant in every:
            write("\t".join([tenant.slug, tenant.name, "disabled" if tenant.disabled_at else ""]).rstrip())


@app.command(epilog="Example: trimtab-service tenants create acme --name 'ACME Ltd'")
def create(
    slug: Slug,
    name: Annotated[str, typer.Option(help="Name for display.")] = "",
    data_dir: DataDir = None,
    as_json: IsJson = True,
) -> None:
    """Create a tenant."""
    with _connected(data_dir) as operator:
        from service.tenancy import tenants

        _show(tenants.create(operator, slug, name))


@app.command(epilog="Example: trimtab-service tenants show acme")
def show(slug: Slug, data_dir: DataDir = None, as_json: IsJson = True) -> None:
    """Print a tenant, its limits and its usage as JSON."""
    with _connected(data_dir):
        from service.tenancy import tenants

        _show(tenants.get(slug))


@app.command(epilog="Example: trimtab-service tenants limit acme --set studies=100 --set suggestions_per_minute=")
def limit(slug: Slug, limits: Limit = None, data_dir: DataDir = None, as_json: IsJson = True) -> None:
    """Set limits of a tenant. `show` lists the limits."""
    with _connected(data_dir) as operator:
        from service.tenancy import tenants

        given: dict[str, int | None] = {}
        for text in limits or []:
            name, equals, value = text.partition("=")
            if not equals or (value and not value.isdigit()):
                raise typer.BadParameter(f"{text!r} does not have the form NAME=NUMBER or NAME=", param_hint="--set")
            given[name] = int(value) if value else None
        _show(tenants.change(operator, slug, limits_=given))


@app.command(epilog="Example: trimtab-service tenants disable acme")
def disable(slug: Slug, data_dir: DataDir = None, as_json: IsJson = True) -> None:
    """Refuse all people and machines of a tenant, within seconds. Nothing is deleted."""
    _set_disabled(slug, True, data_dir)


@app.command(epilog="Example: trimtab-service tenants enable acme")
def enable(slug: Slug, data_dir: DataDir = None, as_json: IsJson = True) -> None:
    """Admit the people and machines of a tenant again."""
    _set_disabled(slug, False, data_dir)


@app.command(epilog="Example: trimtab-service tenants export acme --output acme.jsonl")
def export(
    slug: Slug,
    output: Annotated[Path | None, typer.Option(help="File to write [default: standard output].")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write all data of a tenant as JSON lines; service/tenancy/export.py describes them."""
    with _connected(data_dir) as operator:
        from service.tenancy import export as exporting
        from service.tenancy import tenants

        parts = exporting.lines(operator, tenants.get(slug))
        if output is None:
            for part in parts:
                sys.stdout.buffer.write(part)
            return
        unfinished = output.with_name(output.name + ".unfinished")
        with unfinished.open("wb") as file:
            file.writelines(parts)
        unfinished.rename(output)


@app.command(epilog="Example: trimtab-service tenants disable acme; trimtab-service tenants delete acme --yes")
def delete(
    slug: Slug,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete a disabled tenant with all its data, including its audit trail. Needs the role that owns the tables.

    In hosted mode, TRIMTAB_OWNER_DATABASE_URL must be set as for `migrate`.
    """
    if not yes:
        typer.confirm(f"Delete tenant {slug!r} with all its studies, trials, agents and its audit trail?", abort=True)
    with _connected(data_dir, as_owner=True) as operator:
        from service.tenancy import deletion

        deleted = deletion.delete(operator, slug)
        if as_json:
            write(json.dumps(dict(deleted), indent=2))
            return
        for table, count in deleted.items():
            write(f"{table}\t{count}")


def _set_disabled(slug: str, disabled: bool, data_dir: Path | None) -> None:
    with _connected(data_dir) as operator:
        from service.tenancy import tenants

        _show(tenants.change(operator, slug, disabled=disabled))


def _show(tenant: Tenant) -> None:
    from service.tenancy import tenants
    from service.tenancy.principal import Principal
    from service.trials.quotas import meter

    limits, used = meter.usage(Principal.system(tenant.pk))
    shown: dict[str, Any] = {"slug": tenant.slug, **tenants.outline(tenant)}
    shown["limits"] = {
        name: {"limit": getattr(limits, name), "own": getattr(tenant, name) is not None, "used": used[name]}
        for name in used
    }
    write(json.dumps(shown, indent=2))


@contextmanager
def _connected(data_dir: Path | None, *, as_owner: bool = False) -> Iterator[Principal]:
    """Set up Django and yield the principal for the audit trail. An expected error ends the command with a message."""
    if data_dir is None:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.hosted")
        owner = os.environ.get("TRIMTAB_OWNER_DATABASE_URL", "")
    else:
        folder = data_dir.expanduser().resolve()
        owner = _embedded(folder)
    if as_owner:
        if not owner:
            raise CommandError(
                "TRIMTAB_OWNER_DATABASE_URL is not set. Only the role that owns the tables can delete the audit trail.",
                "owner_needed",
            )
        os.environ["DATABASE_URL"] = owner
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise CommandError(str(error), "not_configured") from None
    from service.core.errors import TrimtabError
    from service.tenancy.principal import NO_TENANT, Principal, Role

    try:
        yield Principal(NO_TENANT, "operator", Role.OPERATOR, credential="command-line")
    except TrimtabError as error:
        raise CommandError(error.message, error.code) from None


def _embedded(folder: Path) -> str:
    """Set the environment of the service that runs with this folder; return the database URL of the tables' owner."""
    from service.embedded.postgres import OWNER, Postgres
    from service.embedded.running import NotRunning, enter
    from service.embedded.supervisor import DATABASE

    try:
        enter(folder)
    except NotRunning as error:
        raise CommandError(str(error), "not_running") from None
    return Postgres(folder / "postgres").url(DATABASE, OWNER)
