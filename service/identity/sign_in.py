"""How people sign in to this installation: the public facts that a client needs before it has a token."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from service.platform.addresses import is_loopback


@dataclass(frozen=True, slots=True)
class Provider:
    """The OpenID Connect issuer, and its public clients for the console and the command line."""

    issuer: str
    console_client: str
    cli_client: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """`token`: the administrator's token is accepted. `provider`: the identity provider, if there is one.

    `token_file`: the path of the file with the token, for callers on the same machine; empty for others.
    """

    token: bool
    provider: Provider | None
    token_file: str


def sign_in(address: str = "") -> SignIn:
    """Return how people sign in, by the settings. `address` is that of the caller."""
    provider = None
    if settings.TRIMTAB_OIDC_ISSUER:
        provider = Provider(
            settings.TRIMTAB_OIDC_ISSUER, settings.TRIMTAB_OIDC_CONSOLE_CLIENT, settings.TRIMTAB_OIDC_CLI_CLIENT
        )
    file = settings.TRIMTAB_ADMIN_TOKEN_FILE if is_loopback(address) else ""
    return SignIn(bool(settings.TRIMTAB_ADMIN_TOKEN or settings.TRIMTAB_ADMIN_TOKEN_FILE), provider, file)
