"""`trimtab login`, `logout`, `whoami` and `revoke`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import trimtab
from trimtab._internal.connection import login as logins
from trimtab._internal.connection.login import Address, Login
from trimtab.cli.connection import connect
from trimtab.cli.output import err, out, print_json, say
from trimtab.errors import Forbidden, Insecure, TrimtabError, Unavailable

LOGIN_EXAMPLES = (
    "Examples:\n\n`trimtab login tuning.example.org:443` (confirm a code in any browser)\n\n"
    "`trimtab login 127.0.0.1:8471 --token-file data/admin-token`"
)


def login(
    address: Annotated[
        str | None,
        typer.Argument(help="HOST:PORT of the service's gRPC port. [default: 127.0.0.1:8471]", show_default=False),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="The token. Other users of this machine may see it: prefer --token-file.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token; - means standard input.")] = None,
    tenant: Annotated[str, typer.Option(help="The tenant to work in, if you are a member of several.")] = "",
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            help="A PEM file with the certificate authority to trust. [default: TRIMTAB_TLS_CA, else the authorities"
            " that gRPC trusts]",
            show_default=False,
        ),
    ] = None,
    plaintext: Annotated[
        bool, typer.Option("--plaintext", help="Do not encrypt the connection to another machine.")
    ] = False,
) -> None:
    """Log in and store the login for later commands.

    The connection is encrypted (TLS) unless the service is on this machine. grpcs://HOST:PORT always encrypts.

    If the service uses an identity provider, the command prints a web address and a code: open the address in a browser
    on any machine. Otherwise the command asks for a token. It stores the login in the system's keyring if the Python
    package `keyring` is installed and finds one, else in a file that only you can read. Other commands and
    `trimtab.Client()` use the stored login unless TRIMTAB_URL and TRIMTAB_TOKEN are set.
    """
    if token is not None and token_file is not None:
        raise typer.BadParameter("--token and --token-file are both given. Give one of them.")
    if token_file is not None:
        try:
            token = sys.stdin.read() if str(token_file) == "-" else token_file.read_text(errors="replace")
        except OSError as error:
            raise typer.BadParameter(f"{token_file} cannot be read: {error.strerror}") from error
    where = Address.parse(address or logins.DEFAULT_ADDRESS, plaintext=plaintext, tls=tls_ca is not None)
    to = Login(where, ca=logins.trusted_file(str(tls_ca) if tls_ca else None) if where.secure else "")
    if token is None:
        wanted = _by_browser(to) or replace(to, token=logins.clean(_asked_for()))
    else:
        wanted = replace(to, token=logins.clean(token))
    wanted, identity = _checked(replace(wanted, tenant=tenant))
    place = logins.store(wanted)
    say(f"Logged in to {wanted.address} as {_described(identity)}; stored in {place}.")


def logout(
    address: Annotated[
        str | None, typer.Argument(help="The gRPC address. [default: that of the last login]", show_default=False)
    ] = None,
) -> None:
    """Remove the stored login and end its session at the identity provider."""
    where = Address.parse(address) if address else logins.default_address()
    found = logins.forget(where)
    if found is None:
        say(f"You were not logged in to {where}.")
        return
    if found.session is not None:
        from trimtab._internal.connection import oidc

        try:
            oidc.end(found.session, found.ca)
        except TrimtabError as error:
            say(f"The session at the identity provider has not ended: {error.message}")
    say(f"Logged out of {where}.")


def whoami(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show your name, tenant and role, and what your token may do."""
    with connect() as client:
        identity, where = client.who_am_i(), client.address
    if as_json:
        print_json({"address": where, **vars(identity)})
        return
    out.print(Text.assemble((identity.actor, "bold"), f" at {where}"))
    out.print(Text(f"tenant {identity.tenant or '(none)'}, role {identity.role}, credential {identity.credential}"))
    limits = f"scopes {', '.join(identity.scopes)}"
    out.print(Text(f"{limits}; only study {identity.study}" if identity.study else limits))


REVOKE_EXAMPLES = (
    "Examples:\n\n`trimtab revoke --person ann`\n\n`trimtab revoke --session 5c1b2f0e-...` (the `sid` in the token)"
)


def revoke(
    person: Annotated[
        str | None, typer.Option(help="The person's name, or identifier at the identity provider.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="One session of the identity provider.")] = None,
) -> None:
    """Revoke the access of a person, or of one session, at once. For administrators.

    The service refuses all existing logins and API tokens of the person. A person who can still sign in at the identity
    provider gets access again, so first disable the person there or remove the person from the tenant's groups.
    """
    if (person is None) == (session is None):
        raise typer.BadParameter("Give exactly one of --person and --session.")
    with connect() as client:
        count = client.revoke_access(person=person, session=session)
    say(f"Revoked: {person or session}, with {count} API token{'' if count == 1 else 's'}.")


def _by_browser(to: Login) -> Login | None:
    """Log in through the device flow; return None if the service has no identity provider."""
    from trimtab._gen import identity_pb2 as pb
    from trimtab._internal.connection import oidc
    from trimtab._internal.connection.transport import Transport

    transport = Transport(to, 5.0)
    try:
        options = transport.call(transport.identity.GetSignIn, pb.GetSignInRequest())
    except Unavailable as error:
        if sys.stdin.isatty() or isinstance(error, Insecure):
            raise
        return None
    finally:
        transport.close()
    if not options.issuer:
        return None
    device = oidc.begin(options.issuer, options.client_id, to.ca)
    err.print("Open this address in a browser, on any machine:\n", markup=False)
    err.print(Text(f"    {device.url}\n", "bold"), soft_wrap=True)
    err.print(Text.assemble("and check that the page shows the code ", (device.code, "bold"), "."), soft_wrap=True)
    if err.is_terminal:
        with err.status("Waiting for your confirmation in the browser (Ctrl-C to cancel) ..."):
            session = oidc.wait(options.issuer, options.client_id, device, to.ca)
    else:
        say(f"Waiting for your confirmation in the browser, for {device.expires_in / 60:.0f} minutes ...")
        session = oidc.wait(options.issuer, options.client_id, device, to.ca)
    return replace(to, session=session)


def _asked_for() -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            "There is no terminal to ask for a token. Give --token-file FILE, for example data/admin-token."
        )
    return str(typer.prompt("Token", hide_input=True))


def _checked(wanted: Login) -> tuple[Login, trimtab.Identity]:
    """Return the login and the caller's identity; ask a member of several tenants for the tenant."""
    from trimtab._gen import identity_pb2 as pb
    from trimtab._internal.connection.transport import Transport
    from trimtab._internal.messages.identity import from_identity

    while True:
        transport = Transport(wanted, 5.0)
        try:
            return wanted, from_identity(transport.call(transport.identity.WhoAmI, pb.WhoAmIRequest()))
        except Forbidden as error:
            if error.code != "tenant_required" or not sys.stdin.isatty():
                raise
            say(error.message)
            wanted = replace(wanted, tenant=str(typer.prompt("Tenant")).strip())
        finally:
            transport.close()


def _described(identity: trimtab.Identity) -> str:
    return f"{identity.actor}, {identity.role}" + (f" of {identity.tenant}" if identity.tenant else "")
