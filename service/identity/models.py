"""What people and machines sign in with. Of every secret only its hash is kept."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned
from service.tenancy.principal import Role


class LoginCode(TenantOwned):
    """A code that opens one console session: what the link that `trimtab-service up` prints is good for."""

    digest = models.CharField(max_length=64, unique=True)
    actor = models.CharField(max_length=200)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class ApiToken(TenantOwned):
    """A token for scripts: what its owner's role may do, within its scopes and, where it names one, its study."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, unique=True)
    # The secret's first characters.
    hint = models.CharField(max_length=16)
    owner = models.CharField(max_length=200)
    # The owner as the identity provider knows him; "" for the local administrator.
    subject = models.CharField(max_length=200, blank=True, db_default="")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    scopes = ExactJSONField(default=list)
    study = models.CharField(max_length=200, null=True)  # noqa: DJ001 - None is "every study", and no study is called ""
    request_id = models.CharField(max_length=100, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

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
    """The role that a person was last seen with in the tenant, in a token that was made at `as_of`."""

    subject = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    # "" for one who is a member no more.
    role = models.CharField(max_length=16, blank=True, choices=[(role.value, role.value) for role in Role])
    as_of = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject", "tenant"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.role}"


class Enrolment(TenantOwned):
    """The right to enrol one agent, once. Used: by which agent, and for which credential."""

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
    """A credential that an agent has drawn itself; the service has seen its hash alone."""

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
    """People and sessions of the identity provider that an administrator has put out.

    A person's tokens count no more if they are from before `not_before`; a session's not at all.
    """

    class Kind(models.TextChoices):
        """What is revoked."""

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
