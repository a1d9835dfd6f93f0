"""Rows of secrets, members and revocations. The service stores only the hash of a secret."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import models
from django.db.models.functions import Now

from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned
from service.tenancy.principal import Role


class LoginCode(TenantOwned):
    """A code that opens one console session. The link that `trimtab-service up` prints contains one."""

    digest = models.CharField(max_length=64, unique=True)
    actor = models.CharField(max_length=200)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class ApiToken(TenantOwned):
    """A token for scripts. It allows what its owner's role, its scopes and its study (if it names one) allow."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, unique=True)
    # The secret's first characters.
    hint = models.CharField(max_length=16)
    owner = models.CharField(max_length=200)
    # The owner's identifier at the identity provider; "" for the local administrator.
    subject = models.CharField(max_length=200, blank=True, db_default="")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    scopes = ExactJSONField(default=list)
    study = models.CharField(max_length=200, null=True)  # noqa: DJ001 - None is "every study", and no study is called ""
    request_id = models.CharField(max_length=100, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # When a call was refused first because the owner had not signed in for too long. It may be an earlier absence.
    suspended_at = models.DateTimeField(null=True)

    # Not a column: until when the owner must sign in; None: without a limit. Set by the list.
    sign_in_by: datetime | None = None

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "owner", "request_id"],
                name="api_token_request",
                condition=~models.Q(request_id=""),
            )
        ]

    def __str__(self) -> str:
        return self.hint


class Membership(TenantOwned):
    """The last known role of a person in the tenant, from a token that was issued at `as_of`."""

    subject = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    # "" for a former member.
    role = models.CharField(max_length=16, blank=True, choices=[(role.value, role.value) for role in Role])
    as_of = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject", "tenant"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.role}"


class Enrolment(TenantOwned):
    """The right to enrol one agent once. After use it names the agent and the credential."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=16)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    agent_id = models.CharField(max_length=100, blank=True, db_default="")
    credential_digest = models.CharField(max_length=64, blank=True, db_default="")

    def __str__(self) -> str:
        return self.hint


class AgentCredential(TenantOwned):
    """A credential that an agent has drawn itself. The service has only seen its hash."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent_id = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    issued_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "agent_id"], name="agent_credentials")]

    def __str__(self) -> str:
        return self.agent_id


class Revocation(TenantOwned):
    """A person or a session of the identity provider whose access an administrator has revoked.

    A person's tokens are invalid if they were issued before `not_before`. All tokens of a revoked session are invalid.
    """

    class Kind(models.TextChoices):
        """The kind of thing that is revoked."""

        PERSON = "person"
        SESSION = "session"

    kind = models.CharField(max_length=16, choices=Kind.choices)
    value = models.CharField(max_length=200)
    not_before = models.DateTimeField()
    revoked_by = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "value"], name="revocation_identity")]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
