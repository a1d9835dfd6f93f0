"""How people sign in to this installation: what a client must know before it has anything to show."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Provider:
    """The OpenID Connect issuer, and the public clients that the console and the command line are there."""

    issuer: str
    console_client: str
    cli_client: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """`token`: the administrator's token is taken. `provider`: people sign in there, if there is one."""

    token: bool
    provider: Provider | None


def sign_in() -> SignIn:
    """As the settings say."""
    provider = None
    if settings.TRIMTAB_OIDC_ISSUER:
        provider = Provider(
            settings.TRIMTAB_OIDC_ISSUER, settings.TRIMTAB_OIDC_CONSOLE_CLIENT, settings.TRIMTAB_OIDC_CLI_CLIENT
        )
    return SignIn(bool(settings.TRIMTAB_ADMIN_TOKEN or settings.TRIMTAB_ADMIN_TOKEN_FILE), provider)
