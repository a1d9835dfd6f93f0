"""API tokens: what scripts sign in with, in place of the person who made them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from service.core.errors import InvalidInput, NotFound, Unauthenticated
from service.identity import memberships, secret
from service.identity.lookup import tenant_of
from service.identity.models import ApiToken
from service.studies import selectors
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.permissions import MATRIX, Action, require
from service.tenancy.principal import Principal, Role, Scope

DEFAULT_DAYS = 90
LONGEST_DAYS = 366
# How stale "last used" may be.
_USED_EVERY = timedelta(minutes=1)
# What a scope is for: without the right to that it would be an empty promise.
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
    """A new token of the caller's, and its secret, which is never shown again.

    The same `request_id` again replaces the token that the first call made, whose secret the caller never saw.

    Raises InvalidInput, and NotFound where there is no such study.
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
        # The audit trail tells of them for longer.
        access.rows(ApiToken, principal).filter(expires_at__lt=Now()).delete()
        if request_id:
            access.rows(ApiToken, principal).filter(owner=principal.actor, request_id=request_id).delete()
        access.add(principal, token)
        audit.record(
            principal,
            "token.create",
            f"token/{token.hint}",
            {"name": name, "scopes": chosen, "study": study, "days": days},
        )
        return access.rows(ApiToken, principal).get(pk=token.pk), text


def list_tokens(principal: Principal, *, everyone: bool = False) -> list[ApiToken]:
    """The caller's live tokens, or everybody's, newest first. Raises Forbidden."""
    if everyone:
        require(principal, Action.TOKEN_ALL)
    found = _live(principal)
    return list((found if everyone else found.filter(owner=principal.actor)).order_by("-created_at", "id"))


def revoke(principal: Principal, token: str) -> None:
    """End one of the caller's tokens, or anybody's with the right to that. `token`: its identifier, or its beginning.

    Raises NotFound, and InvalidInput where several begin so.
    """
    check_identifier("token", token, 100, required=True)
    live = _live(principal).filter(_named(token))
    mine = live.filter(owner=principal.actor)
    if not mine and live:
        require(principal, Action.TOKEN_ALL)
    found = list(mine or live)
    if not found:
        raise NotFound("token_not_found", f"There is no live token {token!r}.")
    if len(found) > 1:
        raise InvalidInput("token", token, "the identifier of one token")
    with access.work(principal):
        access.rows(ApiToken, principal).filter(pk=found[0].pk).update(revoked_at=Now())
        audit.record(principal, "token.revoke", f"token/{found[0].hint}", {"owner": found[0].owner})


def find(text: str) -> Principal:
    """The principal of a token's secret, which was just used: with the role of its making, or what the owner has left.

    Raises Unauthenticated.
    """
    digest = secret.digest(text)
    tenant = tenant_of(digest)
    if tenant is not None:
        system = Principal.system(tenant)
        token = _live(system).filter(digest=digest).first()
        if token is not None:
            role = memberships.lesser(system, token.subject, Role(token.role))
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
    raise Unauthenticated("invalid_token", "The token has expired, was revoked, or never was one of this service.")


def _note_use(system: Principal, token: ApiToken) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - _USED_EVERY)
    if token.last_used_at is None or access.rows(ApiToken, system).filter(stale, pk=token.pk).exists():
        with access.work(system):
            access.rows(ApiToken, system).filter(stale, pk=token.pk).update(last_used_at=Now())


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
            raise InvalidInput("scopes", scope, f"of {', '.join(allowed)}, which your role {principal.role} allows")
    if not scopes:
        raise InvalidInput("scopes", "", f"one or more of {', '.join(allowed)}")
    return sorted(set(scopes))
