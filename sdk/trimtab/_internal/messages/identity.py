"""Conversion of identities, tokens and the audit trail from messages."""

import json

from trimtab._gen import identity_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab.identity import ApiToken, AuditEntry, Identity


def from_identity(message: pb.WhoAmIResponse) -> Identity:
    """Return the identity of the caller."""
    return from_message(Identity, message, study=message.study or None)


def from_api_token(message: pb.ApiToken) -> ApiToken:
    """Return an API token."""
    return from_message(ApiToken, message, study=message.study or None)


def from_audit_entry(message: pb.AuditEntry) -> AuditEntry:
    """Return an entry of the audit trail."""
    return from_message(
        AuditEntry,
        message,
        detail=json.loads(message.detail),
        before=json.loads(message.before),
        after=json.loads(message.after),
    )
