"""The credentials of agents.

An administrator creates an enrolment token, which is valid once. The agent exchanges it for a credential and renews the
credential long before it expires. The agent draws each credential itself, stores it, and sends the hash. If an answer
is lost, the agent repeats the call with the same hash and gets the same answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from service.core.errors import Conflict, Forbidden, InvalidInput, NotFound, ResourceExhausted, Unauthenticated
from service.identity import secret
from service.identity.lookup import tenant_of
from service.identity.models import AgentCredential, Enrolment
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.principal import ENROLLED, Principal, Role, Scope

DEFAULT_MINUTES = 60
LONGEST_MINUTES = 7 * 24 * 60
# An expired enrolment is kept for this time, for an agent that repeats the call because the answer was lost.
_KEPT = timedelta(days=1)
# For each agent: the credential in use, its successor, and one whose answer was lost.
_MOST_CREDENTIALS = 3
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Issued:
    """The lifetime of a credential, and the time after which the agent should renew it, in seconds."""

    seconds: float
    renewal_seconds: float


def create(principal: Principal, *, minutes: int = DEFAULT_MINUTES) -> tuple[Enrolment, str]:
    """Create a token that enrols one agent once; return its row and its secret. Raises InvalidInput."""
    if isinstance(minutes, bool) or not 1 <= minutes <= LONGEST_MINUTES:
        raise InvalidInput("minutes", minutes, f"1 to {LONGEST_MINUTES}")
    text = secret.create(secret.Kind.ENROLMENT)
    enrolment = Enrolment(
        digest=secret.digest(text),
        hint=secret.hint(text),
        created_by=principal.actor,
        expires_at=Now() + timedelta(minutes=minutes),
    )
    with access.work(principal):
        access.rows(Enrolment, principal).filter(expires_at__lt=Now() - _KEPT).delete()
        most = settings.TRIMTAB_ENROLMENTS_PER_TENANT
        if access.rows(Enrolment, principal).filter(used_at=None, expires_at__gt=Now()).count() >= most:
            message = f"The tenant has {most} unused enrolments, which is the limit. Wait until some have expired."
            raise ResourceExhausted("too_many_enrolments", message, limit=most)
        access.add(principal, enrolment)
        audit.record(principal, "agent.allow", f"enrolment/{enrolment.hint}", {"minutes": minutes})
        return access.rows(Enrolment, principal).get(pk=enrolment.pk), text


def enrol(token: str, *, agent_id: str, credential_digest: str) -> Issued:
    """Exchange an enrolment token for the first credential of an agent.

    Raises Conflict (`agent_enrolled`) if the agent has a valid credential already; Unauthenticated
    (`invalid_enrolment`) for a token that has expired, was used for another credential, or does not exist;
    InvalidInput.
    """
    check_identifier("agent_id", agent_id, 100, required=True)
    _check_digest(credential_digest)
    digest = secret.digest(token)
    tenant = tenant_of(digest) if secret.kind_of(token) is secret.Kind.ENROLMENT else None
    if tenant is None:
        raise _invalid()
    principal = Principal(
        tenant, f"agent/{agent_id}", Role.AGENT, frozenset({Scope.AGENT}), credential=f"enrolment:{secret.hint(token)}"
    )
    with access.work(principal):
        enrolment = access.rows(Enrolment, principal).select_for_update().filter(digest=digest).first()
        if enrolment is None:
            raise _invalid()
        use = {"agent_id": agent_id, "credential_digest": credential_digest}
        if enrolment.used_at is not None:
            if use != {name: getattr(enrolment, name) for name in use}:
                raise _invalid()
            if not access.rows(AgentCredential, principal).filter(digest=credential_digest).exists():
                raise _invalid()
        else:
            unused = access.rows(Enrolment, principal).filter(pk=enrolment.pk, expires_at__gt=Now())
            if not unused.update(used_at=Now(), **use):
                raise _invalid()
            earlier = access.rows(AgentCredential, principal).filter(agent_id=agent_id)
            if earlier.filter(expires_at__gt=Now()).exists():
                raise Conflict(
                    "agent_enrolled",
                    f"Agent {agent_id!r} has a valid credential. If it has lost it, an administrator revokes it first:"
                    f" trimtab agent revoke {agent_id}",
                )
            earlier.delete()
            _add(principal, agent_id, credential_digest)
            audit.record(principal, "agent.enrol", f"agent/{agent_id}", {"allowed_by": enrolment.created_by})
    return _issued()


def renew(principal: Principal, *, agent_id: str, credential_digest: str) -> Issued:
    """Add a successor to the credential that an agent calls with. The old one stays valid until it expires.

    Raises Conflict (`not_enrolled`) for a caller without an agent's credential; InvalidInput.
    """
    check_own(principal, agent_id)
    if not principal.is_enrolled:
        raise Conflict("not_enrolled", "Only an agent that has enrolled has a credential to renew.")
    _check_digest(credential_digest)
    with access.work(principal):
        mine = access.rows(AgentCredential, principal).filter(agent_id=agent_id)
        # The lock serialises two renewals that arrive at the same time.
        live = list(mine.select_for_update().filter(expires_at__gt=Now()).order_by("-issued_at"))
        if not any(credential.digest == credential_digest for credential in live):
            in_use = [credential.pk for credential in live if _names(principal, credential)]
            keep = [credential.pk for credential in live if credential.pk not in in_use][: _MOST_CREDENTIALS - 2]
            mine.exclude(pk__in=[*in_use, *keep]).delete()
            _add(principal, agent_id, credential_digest)
            audit.record(principal, "agent.renew", f"agent/{agent_id}")
    return _issued()


def revoke(principal: Principal, agent_id: str) -> None:
    """End every credential of an agent. Raises NotFound."""
    with access.work(principal):
        gone, _ = access.rows(AgentCredential, principal).filter(agent_id=agent_id).delete()
        if not gone:
            raise NotFound("agent_not_enrolled", f"Agent {agent_id!r} has no credential.")
        audit.record(principal, "agent.revoke", f"agent/{agent_id}")


def find(text: str) -> Principal:
    """Return the principal of an agent's credential. Raises Unauthenticated."""
    digest = secret.digest(text)
    tenant = tenant_of(digest)
    if tenant is not None:
        system = Principal.system(tenant)
        found = access.rows(AgentCredential, system).filter(digest=digest, expires_at__gt=Now()).first()
        if found is not None:
            return Principal(
                tenant,
                f"agent/{found.agent_id}",
                Role.AGENT,
                frozenset({Scope.AGENT}),
                credential=ENROLLED + digest[:8],
            )
    raise Unauthenticated(
        "invalid_credential", "The agent's credential has expired or was revoked. Enrol the agent again."
    )


def check_own(principal: Principal, agent_id: str) -> None:
    """Refuse an enrolled agent that calls in the name of another. Raises Forbidden (`another_agent`)."""
    if principal.is_enrolled and principal.actor != f"agent/{agent_id}":
        raise Forbidden("another_agent", f"This credential belongs to {principal.actor}, not to {agent_id!r}.")


def _add(principal: Principal, agent_id: str, digest: str) -> None:
    # The hash may also belong to an agent of another tenant, whose rows this caller does not see.
    if tenant_of(digest) is not None:
        raise InvalidInput("credential_digest", digest, "the hash of a new credential that no other agent uses")
    access.add(
        principal,
        AgentCredential(agent_id=agent_id, digest=digest, expires_at=Now() + settings.TRIMTAB_AGENT_CREDENTIAL),
    )


def _names(principal: Principal, credential: AgentCredential) -> bool:
    return principal.credential == ENROLLED + credential.digest[:8]


def _issued() -> Issued:
    return Issued(
        settings.TRIMTAB_AGENT_CREDENTIAL.total_seconds(),
        min(settings.TRIMTAB_AGENT_RENEWAL, settings.TRIMTAB_AGENT_CREDENTIAL / 3).total_seconds(),
    )


def _check_digest(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput("credential_digest", digest, "SHA-256 of the credential, 64 hexadecimal digits")


def _invalid() -> Unauthenticated:
    return Unauthenticated(
        "invalid_enrolment",
        "The enrolment token was used, has expired, or does not exist. Ask an administrator for a new one.",
    )
