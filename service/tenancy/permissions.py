"""Permissions: the one matrix of roles and actions.

Every REST route and every gRPC method names its action (`View.actions`, `rpc.interceptors.requires`), and calls
`require` first. The tests run through the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from service.core.errors import Forbidden
from service.tenancy.principal import NO_TENANT, Principal, Role, Scope


class Action(StrEnum):
    """An action for which a caller needs permission."""

    SESSION_READ = "session.read"
    STUDY_READ = "study.read"
    STUDY_CREATE = "study.create"
    STUDY_UPDATE = "study.update"
    STUDY_DELETE = "study.delete"
    OPERATION_READ = "operation.read"
    TRIAL_SUGGEST = "trial.suggest"
    TRIAL_REPORT = "trial.report"
    AGENT_READ = "agent.read"
    AGENT_RUN = "agent.run"
    AGENT_ENROL = "agent.enrol"
    COMPONENT_WRITE = "component.write"
    TOKEN_OWN = "token.own"
    TOKEN_ALL = "token.all"
    MEMBER_READ = "member.read"
    ACCESS_REVOKE = "access.revoke"
    MATCH_READ = "match.read"
    MATCH_REPORT = "match.report"
    RECORD_READ = "record.read"
    RECORD_CHANGE = "record.change"
    RECORD_APPROVE = "record.approve"
    MATCHING_CONFIGURE = "matching.configure"
    QUOTA_READ = "quota.read"
    AUDIT_READ = "audit.read"
    TENANT_EXPORT = "tenant.export"
    TENANT_MANAGE = "tenant.manage"
    NOTICE_READ = "notice.read"
    NOTICE_CONFIGURE = "notice.configure"
    LIVE_APPROVE = "live.approve"


_V, _M, _A, _O, _G = Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OPERATOR, Role.AGENT

# An operator who is a member of a tenant has the rights of its administrators there.
MATRIX: Mapping[Action, frozenset[Role]] = {
    action: frozenset(roles)
    for action, roles in {
        #                     viewer member admin operator agent
        Action.SESSION_READ: (_V, _M, _A, _O, _G),  # who am I
        Action.STUDY_READ: (_V, _M, _A, _O),  # studies, trials, analyses, streams of changes
        Action.STUDY_CREATE: (_M, _A, _O),
        Action.STUDY_UPDATE: (_M, _A, _O),  # pause, resume, complete, abort, budget, final check
        Action.STUDY_DELETE: (_M, _A, _O),
        Action.OPERATION_READ: (_V, _M, _A, _O),  # what an ask came to
        Action.TRIAL_SUGGEST: (_M, _A, _O),  # ask, enqueue
        Action.TRIAL_REPORT: (_M, _A, _O),  # measure, complete, fail, stop, add
        Action.AGENT_READ: (_V, _M, _A, _O),
        Action.AGENT_RUN: (_A, _O, _G),  # register, lease, report, settle
        Action.COMPONENT_WRITE: (_M, _A, _O),  # write a component's file, which an administrator may then install
        Action.AGENT_ENROL: (_A, _O),  # give a machine a credential, take it back
        Action.MATCH_READ: (_V, _M, _A, _O, _G),  # the record that a job resembles most; it changes nothing
        Action.MATCH_REPORT: (_A, _O, _G),  # places of jobs in pairs, and how jobs ended, which may withdraw records
        Action.RECORD_READ: (_V, _M, _A, _O),  # records, reported jobs, settings, quality of the matching
        Action.RECORD_CHANGE: (_M, _A, _O),  # withdraw and restore records
        Action.RECORD_APPROVE: (_A, _O),  # give other people's jobs settings whose gain holds under conditions
        Action.MATCHING_CONFIGURE: (_A, _O),  # weights and threshold
        Action.TOKEN_OWN: (_V, _M, _A, _O),  # one's own API tokens: make, list, revoke
        Action.TOKEN_ALL: (_A, _O),  # tokens of all members of the tenant: list, revoke
        Action.MEMBER_READ: (_A, _O),  # who was seen in the tenant, and in which role
        Action.ACCESS_REVOKE: (_A, _O),  # put a person out at once
        Action.QUOTA_READ: (_V, _M, _A, _O),
        Action.AUDIT_READ: (_A, _O),  # read and export
        Action.TENANT_EXPORT: (_A, _O),
        Action.NOTICE_READ: (_V, _M, _A, _O),  # notices of the tenant, and which of them one has read
        Action.NOTICE_CONFIGURE: (_A, _O),  # channels (webhooks, mail) and the log of their deliveries
        Action.LIVE_APPROVE: (_A, _O),  # approve and decline plans of live trials
        Action.TENANT_MANAGE: (_O,),  # list, create, disable, limit, delete
    }.items()
}

_READ = {
    Action.SESSION_READ,
    Action.STUDY_READ,
    Action.OPERATION_READ,
    Action.AGENT_READ,
    Action.QUOTA_READ,
    Action.MATCH_READ,
    Action.RECORD_READ,
    Action.NOTICE_READ,
}
_STUDY = {Action.STUDY_CREATE, Action.STUDY_UPDATE, Action.STUDY_DELETE, Action.TRIAL_SUGGEST, Action.TRIAL_REPORT}
_TUNE = _STUDY | {Action.COMPONENT_WRITE, Action.RECORD_CHANGE}
# What each scope lets an API token do, as far as its owner's role may.
SCOPES: Mapping[Scope, frozenset[Action]] = {
    Scope.READ: frozenset(_READ),
    Scope.TUNE: frozenset(_READ | _TUNE),
    Scope.AGENT: frozenset({Action.SESSION_READ, Action.AGENT_RUN, Action.MATCH_READ, Action.MATCH_REPORT}),
    Scope.ADMIN: frozenset(Action),
}
# The actions that a token for one study allows on that study.
IN_ONE_STUDY = frozenset(_STUDY | {Action.STUDY_READ})
# The actions that such a token allows without naming a study. selectors.get_operation checks an operation's study.
BESIDE_ONE_STUDY = frozenset({Action.SESSION_READ, Action.OPERATION_READ})
# The actions that need no tenant.
BEYOND_TENANTS = frozenset({Action.SESSION_READ, Action.TENANT_MANAGE})


def may(principal: Principal, action: Action, study: str | None = None) -> bool:
    """Return whether `require` would accept it."""
    return (
        principal.role in MATRIX[action]
        and any(action in SCOPES[scope] for scope in principal.scopes)
        and (principal.study is None or _within(principal.study, action, study))
        and (principal.tenant_id != NO_TENANT or action in BEYOND_TENANTS)
    )


def require(principal: Principal, action: Action, study: str | None = None) -> None:
    """Check that the principal may do an action. `study` is the name of the affected study.

    Raises Forbidden (`not_permitted`), which names the action and the roles that may.
    """
    if may(principal, action, study):
        return
    roles = [role for role in Role if role in MATRIX[action]]
    if principal.role not in roles:
        reason = f"needs the role {_listed(roles)}; yours is {principal.role}"
    elif not any(action in SCOPES[scope] for scope in principal.scopes):
        scopes = [scope for scope in Scope if action in SCOPES[scope]]
        reason = f"needs a token with the scope {_listed(scopes)}; this one has {_listed(sorted(principal.scopes))}"
    elif principal.study is not None and not _within(principal.study, action, study):
        reason = f"is beyond this token, which is good for study {principal.study!r} alone"
    else:
        reason = "needs a tenant, and you are a member of none"
    raise Forbidden(
        "not_permitted",
        f"The action {action} {reason}.",
        action=str(action),
        role=str(principal.role),
        roles=[str(role) for role in roles],
    )


def _within(only: str, action: Action, study: str | None) -> bool:
    return action in BESIDE_ONE_STUDY or (action in IN_ONE_STUDY and study == only)


def _listed(names: list[Role] | list[Scope]) -> str:
    return " or ".join(names) or "none"
