"""Keycloak's access tokens: who somebody is, in which tenants, with which roles. Checked without asking Keycloak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import jwt
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from service.core.errors import Unauthenticated
from service.identity import keys
from service.tenancy.principal import Role

# Those of secrets that both sides share have no place here: whoever can check such a token can make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
MAX_CHARACTERS = 16_384
# The realm's role of those who run the installation.
OPERATOR = "operator"
# A person in several groups of a tenant has the last of these.
RANKS = (Role.AGENT, Role.VIEWER, Role.MEMBER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Proof:
    """What an administrator may revoke: a person (`subject`, which never changes, or `name`) or a `session`.

    Times are in seconds since 1970, by the identity provider's clock.
    """

    subject: str
    name: str
    session: str
    issued_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What a token says: `tenants` are the roles by the tenants' names."""

    proof: Proof
    tenants: Mapping[str, Role]
    operator: bool


@dataclass(frozen=True, slots=True)
class Verifier:
    """Checks the tokens of one issuer."""

    issuer: str
    audience: str
    algorithms: Sequence[str]
    leeway_seconds: float
    groups: str
    keys: keys.Keys

    def __post_init__(self) -> None:
        for algorithm in self.algorithms:
            if algorithm not in ALGORITHMS:
                raise ImproperlyConfigured(
                    f"TRIMTAB_OIDC_ALGORITHMS has {algorithm!r}; allowed: {', '.join(ALGORITHMS)}"
                )

    def verify(self, token: str) -> Identity:
        """What the token says, if this issuer made it for this service and it still counts.

        Raises Unauthenticated, and Unavailable where the issuer's keys are not known and cannot be had.
        """
        try:
            if len(token) > MAX_CHARACTERS:
                raise jwt.InvalidTokenError("too long")
            header = jwt.get_unverified_header(token)
            # Before anything else is done: neither "none" nor a secret's algorithm ever gets near a key.
            if header.get("alg") not in self.algorithms:
                raise jwt.InvalidAlgorithmError("signed with an algorithm that is not allowed")
            claims = jwt.decode(
                token,
                self.keys.find(str(header.get("kid"))),
                algorithms=list(self.algorithms),
                issuer=self.issuer,
                audience=self.audience,
                leeway=self.leeway_seconds,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
            # Keycloak's ID, refresh and logout tokens are signed with the same keys.
            if claims.get("typ", "Bearer") != "Bearer":
                raise jwt.InvalidTokenError("not an access token")
            return self._identity(claims)
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("token_expired", "The token has expired: sign in again.") from None
        except jwt.InvalidAudienceError:
            raise Unauthenticated("wrong_audience", f"The token is not for {self.audience!r}.") from None
        except jwt.InvalidIssuerError:
            raise Unauthenticated("wrong_issuer", f"The token is not from {self.issuer}.") from None
        except jwt.MissingRequiredClaimError as error:
            code = "wrong_audience" if error.claim == "aud" else "invalid_token"
            raise Unauthenticated(
                code, f"The token is not valid for this service: it has no {error.claim!r}."
            ) from None
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise Unauthenticated("invalid_token", f"The token is not valid for this service: {error}.") from None

    def _identity(self, claims: Mapping[str, object]) -> Identity:
        subject = str(claims["sub"])
        tenants: dict[str, Role] = {}
        for path in _texts(claims.get("groups")):
            folder, _, role = path.rpartition("/")
            parent, _, tenant = folder.rpartition("/")
            if parent == self.groups and tenant and role in RANKS:
                tenants[tenant] = max(tenants.get(tenant, Role.AGENT), Role(role), key=RANKS.index)
        access = claims.get("realm_access")
        proof = Proof(
            subject,
            str(claims.get("preferred_username") or subject),
            str(claims.get("sid") or ""),
            int(float(str(claims["iat"]))),
            int(float(str(claims["exp"]))),
        )
        return Identity(
            proof, tenants, OPERATOR in _texts(access.get("roles") if isinstance(access, Mapping) else None)
        )


@cache
def verifier() -> Verifier | None:
    """That of the issuer in the settings, if one is configured."""
    issuer, url = settings.TRIMTAB_OIDC_ISSUER, settings.TRIMTAB_OIDC_JWKS_URL
    if not issuer:
        return None
    return Verifier(
        issuer,
        settings.TRIMTAB_OIDC_AUDIENCE,
        tuple(settings.TRIMTAB_OIDC_ALGORITHMS),
        settings.TRIMTAB_OIDC_LEEWAY_SECONDS,
        settings.TRIMTAB_OIDC_GROUPS.rstrip("/"),
        keys.Keys(lambda: keys.fetch(issuer, url)),
    )


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
