"""`trimtab login`, `logout` and `whoami`: who the user is."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import trimtab
from trimtab import login as logins
from trimtab.cli.output import err, out, print_json, say
from trimtab.errors import Forbidden, Insecure, TrimtabError, Unavailable
from trimtab.login import Address, Login

LOGIN_EXAMPLES = (
    "Examples:\n\n`trimtab login tuning.example.org:443` (by a code that you confirm in any browser)\n\n"
    "`trimtab login 127.0.0.1:8471 --token-file data/admin-token`"
)


def login(
    address: Annotated[
        str | None,
        typer.Argument(help="HOST:PORT of the gRPC port. [default: 127.0.0.1:8471]", show_default=False),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="The token. Others on this machine may see it: better use --token-file.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token; - is standard input.")] = None,
    tenant: Annotated[str, typer.Option(help="Which one is meant, if you are a member of several.")] = "",
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            help="Believe the certificates that this authority signed, a PEM file. [default: TRIMTAB_TLS_CA, else those"
            " that everybody knows]",
            show_default=False,
        ),
    ] = None,
    plaintext: Annotated[
        bool, typer.Option("--plaintext", help="Do not encrypt the connection to another machine.")
    ] = False,
) -> None:
    """Log in, and stay logged in.

    The connection is encrypted (TLS) unless the service is on this machine; grpcs://HOST:PORT encrypts there, too.

    Where the service works with an identity provider, this prints a web address and a code: open it in any browser, on
    any machine. Without one it takes a token. What comes of it is stored in the system's keyring, if the Python package
    `keyring` is installed and finds one, else in a file that only you can read. Other commands, and
    `trimtab.Client()`, use it unless TRIMTAB_URL and TRIMTAB_TOKEN are set.
    """
    if token is not None and token_file is not None:
        raise typer.BadParameter("give --token or --token-file, not both")
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
        str | None, typer.Argument(help="The gRPC address. [default: the one of the last login]", show_default=False)
    ] = None,
) -> None:
    """Forget the login, and tell the identity provider that it is over."""
    where = Address.parse(address) if address else logins.default_address()
    found = logins.forget(where)
    if found is None:
        say(f"You were not logged in to {where}.")
        return
    if found.session is not None:
        from trimtab import oidc

        try:
            oidc.end(found.session, found.ca)
        except TrimtabError as error:
            say(f"The identity provider could not be told: {error.message}")
    say(f"Logged out of {where}.")


def whoami(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show who the service takes you for: name, tenant, role, and what your token may do."""
    with trimtab.Client(retry_seconds=10.0) as client:
        identity, where = client.who_am_i(), client.address
    if as_json:
        print_json({"address": where, **vars(identity)})
        return
    out.print(Text.assemble((identity.actor, "bold"), f" at {where}"))
    out.print(Text(f"tenant {identity.tenant or '(none)'}, role {identity.role}, by {identity.credential}"))
    limits = f"scopes {', '.join(identity.scopes)}"
    out.print(Text(f"{limits}; study {identity.study} alone" if identity.study else limits))


REVOKE_EXAMPLES = (
    "Examples:\n\n`trimtab revoke --person ann`\n\n`trimtab revoke --session 5c1b2f0e-...` (`sid` in the token)"
)


def revoke(
    person: Annotated[str | None, typer.Option(help="A name, or the identity provider's identifier.")] = None,
    session: Annotated[str | None, typer.Option(help="One session of the identity provider.")] = None,
) -> None:
    """Put a person out at once, or one session: for administrators.

    All that the person holds from before now is refused, API tokens included. Whoever may still sign in at the identity
    provider may come again: disable the person there, or take him out of the tenant's groups, before.
    """
    if (person is None) == (session is None):
        raise typer.BadParameter("give --person or --session")
    with trimtab.Client(retry_seconds=10.0) as client:
        count = client.revoke_access(person=person, session=session)
    say(f"Out: {person or session}; {count} API token{'' if count == 1 else 's'} ended.")


def _by_browser(to: Login) -> Login | None:
    """The device flow, where the service says that people sign in at an identity provider."""
    from trimtab import oidc
    from trimtab._gen import identity_pb2 as pb
    from trimtab.transport import Transport

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
    err.print(Text.assemble("and check that it shows the code ", (device.code, "bold"), "."), soft_wrap=True)
    if err.is_terminal:
        with err.status("Waiting until you have agreed there (Ctrl-C to give up) ..."):
            session = oidc.wait(options.issuer, options.client_id, device, to.ca)
    else:
        say(f"Waiting until you have agreed there, for {device.expires_in / 60:.0f} minutes ...")
        session = oidc.wait(options.issuer, options.client_id, device, to.ca)
    return replace(to, session=session)


def _asked_for() -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter("give --token-file FILE, for example the service's data/admin-token")
    return str(typer.prompt("Token", hide_input=True))


def _checked(wanted: Login) -> tuple[Login, trimtab.Identity]:
    """Who the service takes the caller for; a member of several tenants is asked which one is meant."""
    from trimtab._gen import identity_pb2 as pb
    from trimtab.converters import from_identity
    from trimtab.transport import Transport

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
