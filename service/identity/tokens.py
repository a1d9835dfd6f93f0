"""API tokens: the credentials of scripts. A token acts for the person who created it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Now

from service.core.errors import InvalidInput, JsonValue, NotFound, ResourceExhausted, Unauthenticated
from service.identity import memberships, secret
from service.identity.lookup import tenant_of
from service.identity.models import ApiToken, Membership
from service.studies import selectors
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.permissions import MATRIX, Action, require
from service.tenancy.principal import Principal, Role, Scope

DEFAULT_DAYS = 90
LONGEST_DAYS = 366
# "Last used" is written at most this often.
_USED_EVERY = timedelta(minutes=1)
# The time for which revoked tokens are kept, and in which a person may create TRIMTAB_TOKENS_PER_HOUR tokens.
_HOUR = timedelta(hours=1)
# The action that each scope is for. A role without the right to it cannot create a token with that scope.
_POINT = {Scope.TUNE: Action.TRIAL_SUGGEST, Scope.AGENT: Action.AGENT_RUN}


def create(
    principal: Principal,
    *,
    name: str,
    scopes: Sequence[str],
    study: str | None = None,
    days: int = DEFAULT_DAYS,
    request_id: str = "",
) -> tuple[ApiToken, str]:
    """Create a token of the caller; return its row and its secret, which is never shown again.

    A second call with the same `request_id` replaces the token of the first call, whose secret was lost.

    Raises InvalidInput, NotFound for an unknown study, and ResourceExhausted (`too_many_tokens`,
    `tokens_created_too_fast`).
    """
    check_identifier("name", name, 200, required=True)
    check_identifier("request_id", request_id, 100)
    if isinstance(days, bool) or not 1 <= days <= LONGEST_DAYS:
        raise InvalidInput("days", days, f"1 to {LONGEST_DAYS}")
    chosen = _scopes(principal, scopes)
    if study is not None:
        selectors.get_study(principal, study)
    text = secret.create(secret.Kind.API_TOKEN)
    token = ApiToken(
        name=name,
        digest=secret.digest(text),
        hint=secret.hint(text),
        owner=principal.actor,
        subject=principal.subject,
        role=principal.role,
        scopes=chosen,
        study=study,
        request_id=request_id,
        expires_at=Now() + timedelta(days=days),
    )
    with access.work(principal):
        # The audit trail still names expired and revoked tokens.
        over = Q(expires_at__lt=Now()) | Q(revoked_at__lt=Now() - _HOUR)
        access.rows(ApiToken, principal).filter(over).delete()
        _check_rate(principal)
        if request_id:
            _replace(principal, request_id)
        most = settings.TRIMTAB_TOKENS_PER_TENANT
        if _live(principal).count() >= most:
            message = f"The tenant has {most} valid API tokens, which is the limit. Revoke tokens that nobody uses."
            raise ResourceExhausted("too_many_tokens", message, limit=most)
        access.add(principal, token)
        audit.record(
            principal,
            "token.create",
            f"token/{token.hint}",
            {"name": name, "scopes": chosen, "study": study, "days": days},
        )
        return access.rows(ApiToken, principal).get(pk=token.pk), text


def list_tokens(principal: Principal, *, everyone: bool = False) -> list[ApiToken]:
    """Return the valid tokens of the caller or of everybody in the tenant, newest first. Raises Forbidden.

    Suspended tokens are among them: their `sign_in_by` has passed.
    """
    if everyone:
        require(principal, Action.TOKEN_ALL)
    live = _live(principal)
    found = list((live if everyone else live.filter(_mine(principal))).order_by("-created_at", "id"))
    owners = memberships.known(principal, {token.subject for token in found})
    for token in found:
        token.sign_in_by = _sign_in_by(token, owners.get(token.subject))
    return found


def revoke(principal: Principal, token: str) -> None:
    """Revoke one token of the caller, or of any member if the caller has the right. `token`: identifier or beginning.

    Raises NotFound, and InvalidInput if several tokens begin with this text.
    """
    check_identifier("token", token, 100, required=True)
    live = _live(principal).filter(_named(token))
    mine = live.filter(_mine(principal))
    if not mine and live:
        require(principal, Action.TOKEN_ALL)
    found = list(mine or live)
    if not found:
        raise NotFound("token_not_found", f"There is no valid token {token!r}.")
    if len(found) > 1:
        raise InvalidInput("token", token, "the identifier of one token")
    with access.work(principal):
        access.rows(ApiToken, principal).filter(pk=found[0].pk).update(revoked_at=Now())
        audit.record(principal, "token.revoke", f"token/{found[0].hint}", {"owner": found[0].owner})


def find(text: str) -> Principal:
    """Return the principal of a token's secret. Its role is the token's, lowered to the owner's last known role.

    Raises Unauthenticated.
    """
    digest = secret.digest(text)
    tenant = tenant_of(digest)
    if tenant is not None:
        system = Principal.system(tenant)
        token = _live(system).filter(digest=digest).first()
        if token is not None:
            owner = memberships.known(system, [token.subject]).get(token.subject)
            role = memberships.lesser(owner, Role(token.role))
            _expect_owner(system, token, owner)
            _note_use(system, token)
            return Principal(
                tenant,
                token.owner,
                role,
                frozenset(Scope(scope) for scope in token.scopes),
                token.study,
                credential=f"token:{token.hint}",
                subject=token.subject,
            )
    raise Unauthenticated("invalid_token", "The token has expired, was revoked, or does not belong to this service.")


def _check_rate(principal: Principal) -> None:
    """Refuse a caller who has created too many tokens within the last hour, whether or not they were revoked."""
    most = settings.TRIMTAB_TOKENS_PER_HOUR
    made = access.rows(ApiToken, principal).filter(_mine(principal), created_at__gt=Now() - _HOUR).count()
    if made >= most:
        raise ResourceExhausted(
            "tokens_created_too_fast",
            f"{principal.actor} has created {made} API tokens within an hour, which is the limit. Use one of them, or"
            " try again later.",
            retryable=True,
            limit=most,
            retry_after_seconds=60,
        )


def _replace(principal: Principal, request_id: str) -> None:
    """Revoke the caller's token of an earlier call with the same `request_id`. It still counts for the rate."""
    rows = access.rows(ApiToken, principal).filter(_mine(principal), request_id=request_id)
    for former in rows:
        if former.revoked_at is None:
            detail = {"owner": former.owner, "replaced": True}
            audit.record(principal, "token.revoke", f"token/{former.hint}", detail)
    rows.update(revoked_at=Coalesce("revoked_at", Now()), request_id="")


def _last_sign_in(token: ApiToken, owner: Membership | None) -> datetime:
    """Return the owner's last known sign-in. It was needed to create the token."""
    return token.created_at if owner is None else max(owner.as_of, token.created_at)


def _sign_in_by(token: ApiToken, owner: Membership | None) -> datetime | None:
    return memberships.sign_in_by(_last_sign_in(token, owner)) if token.subject else None


def _expect_owner(system: Principal, token: ApiToken, owner: Membership | None) -> None:
    """Refuse a token whose owner has not signed in for too long. Raises Unauthenticated (`owner_absent`)."""
    due = _sign_in_by(token, owner)
    if due is None or datetime.now(UTC) < due:
        return
    last = _last_sign_in(token, owner)
    first = Q(suspended_at=None) | Q(suspended_at__lt=last)
    with access.work(system):
        # One entry for each absence, and not for each call.
        if access.rows(ApiToken, system).filter(first, pk=token.pk).update(suspended_at=Now()):
            detail: dict[str, JsonValue] = {"owner": token.owner, "last_sign_in": last.isoformat()}
            audit.record(system, "token.suspend", f"token/{token.hint}", detail)
    raise Unauthenticated(
        "owner_absent",
        f"{token.owner}, the owner of this token, has not signed in for {settings.TRIMTAB_OWNER_ABSENCE_DAYS:g} days."
        " The token works again as soon as the owner signs in.",
    )


def _note_use(system: Principal, token: ApiToken) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - _USED_EVERY)
    if token.last_used_at is None or access.rows(ApiToken, system).filter(stale, pk=token.pk).exists():
        with access.work(system):
            access.rows(ApiToken, system).filter(stale, pk=token.pk).update(last_used_at=Now())


def _mine(principal: Principal) -> Q:
    """Return the condition for tokens of the caller. Of two people with one name, each has their own."""
    return Q(owner=principal.actor, subject=principal.subject)


def _live(principal: Principal) -> QuerySet[ApiToken]:
    return access.rows(ApiToken, principal).filter(revoked_at=None, expires_at__gt=Now())


def _named(token: str) -> Q:
    try:
        return Q(pk=UUID(token))
    except ValueError:
        return Q(hint=token)


def _scopes(principal: Principal, scopes: Sequence[str]) -> list[str]:
    allowed = [
        scope
        for scope in Scope
        if scope in principal.scopes and (scope not in _POINT or principal.role in MATRIX[_POINT[scope]])
    ]
    for scope in scopes:
        if scope not in allowed:
            raise InvalidInput("scopes", scope, f"{', '.join(allowed)} (your role is {principal.role})")
    if not scopes:
        raise InvalidInput("scopes", "", f"one or more of {', '.join(allowed)}")
    return sorted(set(scopes))
