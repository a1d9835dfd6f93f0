"""`trimtab-service keycloak`: commands that set up the realm of Trimtab in a Keycloak, or check it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from service.command_errors import CommandError
from service.keycloak import realm as realms
from service.keycloak.admin_api import KeycloakError, Server
from service.tenancy.principal import SLUG, SLUG_FORM
from trimtab_components.terminal import without_passwords, write

PASSWORD_VARIABLE = "KEYCLOAK_ADMIN_PASSWORD"

app = typer.Typer(
    no_args_is_help=True,
    help="Set up the realm of Trimtab in a Keycloak, or check it. The password of Keycloak's administrator is in the"
    f" environment variable {PASSWORD_VARIABLE} or in a file.",
    epilog="Documentation: CONSOLE/docs/reference/commands.html#trimtab-service-keycloak",
)

Url = Annotated[str, typer.Option(help="Address of Keycloak with its path, such as https://sso.example.org.")]
ConsoleUrl = Annotated[str, typer.Option(help="Address of the console for browsers, such as https://tune.example.org.")]
Realm = Annotated[str, typer.Option(help="Name of the realm.")]
Tenants = Annotated[
    list[str], typer.Option("--tenant", help="Short name of a tenant, for its groups. Can be repeated.")
]
Admin = Annotated[str, typer.Option(help="Name of an administrator in Keycloak's realm `master`.")]
PasswordFile = Annotated[
    Path | None, typer.Option(help="File with the administrator's password.", exists=True, dir_okay=False)
]


@app.command()
def provision(
    url: Url,
    console_url: ConsoleUrl,
    tenant: Tenants = ["default"],  # noqa: B006  # typer reads the default
    realm: Realm = "trimtab",
    admin: Admin = "admin",
    password_file: PasswordFile = None,
) -> None:
    """Create the realm with its clients, roles, and the groups of tenants, or add what it lacks, and print the changes.

    It repairs what Trimtab needs and removes nothing. It does not change settings of an existing realm, such as the
    lifetime of tokens; `check` lists them. A second run changes nothing.

    Examples:

      KEYCLOAK_ADMIN_PASSWORD=... trimtab-service keycloak provision --url https://sso.example.org
      --console-url https://tune.example.org

      trimtab-service keycloak provision --url http://127.0.0.1:8180 --console-url http://127.0.0.1:8470
      --password-file password --tenant acme --tenant globex
    """
    changes = 0
    try:
        server = Server(url, admin, _password(password_file))
        wanted = realms.shipped(realm, console_url)
        for found in realms.differences(server, wanted, _checked(tenant)):
            if found.repair is None:
                write(f"kept     {found.subject}: {found.problem}")
                continue
            found.repair()
            changes += 1
            write(f"repaired {found.subject}: {found.problem}")
    except KeycloakError as error:
        raise CommandError(str(error), "keycloak_failed") from None
    write(f"{changes} changes." if changes else "No changes: the realm has all that Trimtab needs.")
    write(without_passwords(f"Set TRIMTAB_OIDC_ISSUER={url.rstrip('/')}/realms/{realm}"))


@app.command()
def check(
    url: Url,
    console_url: ConsoleUrl,
    tenant: Tenants = ["default"],  # noqa: B006  # typer reads the default
    realm: Realm = "trimtab",
    admin: Admin = "admin",
    password_file: PasswordFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare a realm with the one that Trimtab needs, and print what differs. Exit status 1: something is missing.

    Lines that begin with `note` are settings that differ from the shipped ones and that an operator may choose.

    Example:

      trimtab-service keycloak check --url https://sso.example.org --console-url https://tune.example.org --tenant acme
    """
    differences = []
    try:
        server = Server(url, admin, _password(password_file))
        for found in realms.differences(server, realms.shipped(realm, console_url), _checked(tenant)):
            kind = "note" if found.repair is None else "fault"
            differences.append({"kind": kind, "subject": found.subject, "problem": found.problem})
            if not as_json:
                write(f"{kind:<5} {found.subject}: {found.problem}")
    except KeycloakError as error:
        raise CommandError(str(error), "keycloak_failed", 2) from None
    faults = sum(one["kind"] == "fault" for one in differences)
    if as_json:
        write(json.dumps({"faults": faults, "differences": differences}, indent=2))
        raise typer.Exit(1 if faults else 0)
    if faults:
        write(f"{faults} faults. `trimtab-service keycloak provision` with the same options repairs them.")
        raise typer.Exit(1)
    write("The realm has all that Trimtab needs.")


def _password(file: Path | None) -> str:
    password = file.read_text().strip() if file else os.environ.get(PASSWORD_VARIABLE, "")
    if not password:
        raise KeycloakError(
            f"the administrator's password is missing. Set {PASSWORD_VARIABLE}, or name a file with --password-file."
        )
    return password


def _checked(tenants: list[str]) -> list[str]:
    for tenant in tenants:
        if not SLUG.fullmatch(tenant):
            raise KeycloakError(f"--tenant: {tenant!r} is not the short name of a tenant. Allowed: {SLUG_FORM}.")
    return tenants
