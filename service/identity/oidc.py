"""Access tokens of Keycloak: identity, tenants and roles of a caller. They are checked without a call to Keycloak."""

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

# No algorithm with a shared secret is allowed: a service that could check such a token could also forge one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
MAX_CHARACTERS = 16_384
# Times of later ages are faults. This one is in the year 2242.
_LATEST = 2**33
# The longest name that a row can hold.
_LONGEST = 200
_OWN_NAMES = ("system", "administrator", "operator")
_OWN_PREFIXES = ("agent/", "person/")
# The kinds of tokens that a header may state; those of access tokens.
_HEADER_KINDS = ("jwt", "at+jwt")
_ACCESS_KINDS = ("at+jwt",)
# The realm's role for operators of the installation.
OPERATOR = "operator"
# A person in several groups of a tenant has the highest of these; the highest comes last.
RANKS = (Role.AGENT, Role.VIEWER, Role.MEMBER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Proof:
    """The identifiers that an administrator may revoke: a person (`subject`, which never changes, or `name`) or a
    `session`.

    Times are in seconds since 1970, by the clock of the identity provider.
    """

    subject: str
    name: str
    session: str
    issued_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Identity:
    """The content of a token. `tenants` maps names of tenants to roles."""

    proof: Proof
    tenants: Mapping[str, Role]
    operator: bool


@dataclass(frozen=True, slots=True)
class Verifier:
    """The check of the tokens of one issuer."""

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
                    f"TRIMTAB_OIDC_ALGORITHMS: {algorithm!r} is not allowed. Use {', '.join(ALGORITHMS)}."
                )

    def verify(self, token: str) -> Identity:
        """Return the content of a valid token that this issuer made for this service.

        Raises Unauthenticated, and Unavailable if the issuer's keys are unknown and cannot be fetched.
        """
        try:
            if len(token) > MAX_CHARACTERS:
                raise jwt.InvalidTokenError("too long")
            header = jwt.get_unverified_header(token)
            # This check comes first: no key is ever used with "none" or an algorithm with a shared secret.
            if header.get("alg") not in self.algorithms:
                raise jwt.InvalidAlgorithmError("signed with an algorithm that is not allowed")
            # RFC 7515: an extension that must be understood, and is not, makes the token invalid.
            if "crit" in header or _kind_of(header.get("typ", "JWT")) not in _HEADER_KINDS:
                raise jwt.InvalidTokenError("not an access token")
            claims = jwt.decode(
                token,
                self.keys.find(str(header.get("kid"))),
                algorithms=list(self.algorithms),
                issuer=self.issuer,
                audience=self.audience,
                leeway=self.leeway_seconds,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
            # Keycloak's ID, refresh and logout tokens are signed with the same keys. A provider that does not write
            # the claim says so in the header (RFC 9068).
            if claims.get("typ", "Bearer" if _kind_of(header.get("typ")) in _ACCESS_KINDS else None) != "Bearer":
                raise jwt.InvalidTokenError("not an access token")
            # Such a token is for the holder of a key (RFC 7800), which a bearer does not show.
            if "cnf" in claims:
                raise jwt.InvalidTokenError("bound to a key")
            return self._identity(claims)
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("token_expired", "The token has expired. Sign in again.") from None
        except jwt.InvalidAudienceError:
            raise Unauthenticated("wrong_audience", f"The token is not for {self.audience!r}.") from None
        except jwt.InvalidIssuerError:
            raise Unauthenticated("wrong_issuer", f"The token is not from {self.issuer}.") from None
        except jwt.MissingRequiredClaimError as error:
            code = "wrong_audience" if error.claim == "aud" else "invalid_token"
            raise Unauthenticated(
                code, f"The token is not valid for this service: it has no {error.claim!r}."
            ) from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise Unauthenticated("invalid_token", f"The token is not valid for this service: {error}.") from None

    def _identity(self, claims: Mapping[str, object]) -> Identity:
        subject = _name(claims, "sub")
        tenants: dict[str, Role] = {}
        for path in _texts(claims.get("groups")):
            folder, _, role = path.rpartition("/")
            parent, _, tenant = folder.rpartition("/")
            if parent == self.groups and tenant and role in RANKS:
                tenants[tenant] = max(tenants.get(tenant, Role.AGENT), Role(role), key=RANKS.index)
        access = claims.get("realm_access")
        issued, expires = (int(float(str(claims[name]))) for name in ("iat", "exp"))
        if not 0 <= issued < _LATEST or not 0 <= expires < _LATEST:
            raise ValueError("its times are not in this age")
        name = _name(claims, "preferred_username") if claims.get("preferred_username") else subject
        # The service itself, its administrator, operators of the command line and agents have these names.
        if name in _OWN_NAMES or name.startswith(_OWN_PREFIXES):
            name = f"person/{name}"[:_LONGEST]
        session = _name(claims, "sid") if claims.get("sid") else ""
        proof = Proof(subject, name, session, issued, expires)
        return Identity(
            proof, tenants, OPERATOR in _texts(access.get("roles") if isinstance(access, Mapping) else None)
        )


@cache
def verifier() -> Verifier | None:
    """Return the verifier for the issuer in the settings, or None without an issuer."""
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


def _name(claims: Mapping[str, object], claim: str) -> str:
    """Return a text that names somebody. Raises ValueError if it is empty, too long or not a printable text."""
    value = claims[claim]
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"its {claim!r} is not a printable text of 1 to {_LONGEST} characters")
    return value


def _kind_of(value: object) -> str | None:
    """Return the media type in a token's header in its short form: at+jwt for application/at+JWT."""
    return value.lower().removeprefix("application/") if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
