"""Conversion of identities, tokens and the audit trail from messages."""

import json

from trimtab._gen import identity_pb2 as identity_pb
from trimtab._internal.messages.values import from_time
from trimtab.identity import ApiToken, AuditEntry, Identity


def from_identity(message: identity_pb.WhoAmIResponse) -> Identity:
    """Return the identity of the caller."""
    return Identity(
        actor=message.actor,
        tenant=message.tenant,
        role=message.role,
        scopes=tuple(message.scopes),
        study=message.study or None,
        credential=message.credential,
    )


def from_api_token(message: identity_pb.ApiToken) -> ApiToken:
    """Return an API token."""
    return ApiToken(
        id=message.id,
        name=message.name,
        hint=message.hint,
        owner=message.owner,
        role=message.role,
        scopes=tuple(message.scopes),
        study=message.study or None,
        created_at=from_time(message.created_at),
        expires_at=from_time(message.expires_at),
        last_used_at=from_time(message.last_used_at),
        sign_in_by=from_time(message.sign_in_by),
    )


def from_audit_entry(message: identity_pb.AuditEntry) -> AuditEntry:
    """Return an entry of the audit trail."""
    return AuditEntry(
        id=message.id,
        at=from_time(message.at),
        actor=message.actor,
        credential=message.credential,
        address=message.address,
        action=message.action,
        target=message.target,
        detail=json.loads(message.detail),
        before=json.loads(message.before),
        after=json.loads(message.after),
    )
