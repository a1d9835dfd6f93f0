"""trimtab.identity.v1.IdentityService."""

from datetime import UTC, datetime
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp

from service._gen import identity_pb2, identity_pb2_grpc
from service.core.errors import InvalidInput
from service.identity import enrolment, principals, revocations, tokens
from service.identity.models import ApiToken
from service.identity.principals import tenant_name
from service.identity.sign_in import sign_in
from service.platform import valid_json
from service.rpc.admission import Context
from service.rpc.interceptors import requires
from service.rpc.servicers.base import Servicer, in_thread
from service.tenancy import audit
from service.tenancy.models import AuditEntry
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal


class IdentityServicer(Servicer, identity_pb2_grpc.IdentityServiceServicer):
    """The service's methods, which the .proto file documents. Each translates, calls one action in a database thread,
    and translates back.
    """

    @requires(None)
    async def GetSignIn(
        self, request: identity_pb2.GetSignInRequest, context: Context
    ) -> identity_pb2.GetSignInResponse:
        provider = sign_in().provider
        if provider is None:
            return identity_pb2.GetSignInResponse()
        return identity_pb2.GetSignInResponse(issuer=provider.issuer, client_id=provider.cli_client)

    @requires(Action.SESSION_READ)
    @in_thread
    def WhoAmI(self, principal: Principal, request: identity_pb2.WhoAmIRequest) -> identity_pb2.WhoAmIResponse:
        return identity_pb2.WhoAmIResponse(
            actor=principal.actor,
            tenant=tenant_name(principal),
            role=principal.role,
            scopes=sorted(principal.scopes),
            study=principal.study or "",
            credential=principal.credential,
        )

    @requires(Action.TOKEN_OWN, study="study")
    @in_thread
    def CreateApiToken(
        self, principal: Principal, request: identity_pb2.CreateApiTokenRequest
    ) -> identity_pb2.CreateApiTokenResponse:
        token, text = tokens.create(
            principal,
            name=request.name,
            scopes=list(request.scopes),
            study=request.study or None,
            days=request.days or tokens.DEFAULT_DAYS,
            request_id=request.request_id,
        )
        return identity_pb2.CreateApiTokenResponse(token=_token(token), secret=text)

    @requires(Action.TOKEN_OWN)
    @in_thread
    def ListApiTokens(
        self, principal: Principal, request: identity_pb2.ListApiTokensRequest
    ) -> identity_pb2.ListApiTokensResponse:
        found = tokens.list_tokens(principal, everyone=request.everyone)
        return identity_pb2.ListApiTokensResponse(tokens=[_token(token) for token in found])

    @requires(Action.TOKEN_OWN)
    @in_thread
    def RevokeApiToken(
        self, principal: Principal, request: identity_pb2.RevokeApiTokenRequest
    ) -> identity_pb2.RevokeApiTokenResponse:
        tokens.revoke(principal, request.token)
        principals.forget()
        return identity_pb2.RevokeApiTokenResponse()

    @requires(Action.AGENT_ENROL)
    @in_thread
    def CreateEnrolment(
        self, principal: Principal, request: identity_pb2.CreateEnrolmentRequest
    ) -> identity_pb2.CreateEnrolmentResponse:
        made, text = enrolment.create(principal, minutes=request.minutes or enrolment.DEFAULT_MINUTES)
        return identity_pb2.CreateEnrolmentResponse(secret=text, expires_at=_time(made.expires_at))

    @requires(Action.AGENT_ENROL)
    @in_thread
    def RevokeAgent(
        self, principal: Principal, request: identity_pb2.RevokeAgentRequest
    ) -> identity_pb2.RevokeAgentResponse:
        enrolment.revoke(principal, request.agent_id)
        principals.forget()
        return identity_pb2.RevokeAgentResponse()

    @requires(Action.ACCESS_REVOKE)
    @in_thread
    def RevokeAccess(
        self, principal: Principal, request: identity_pb2.RevokeAccessRequest
    ) -> identity_pb2.RevokeAccessResponse:
        count = 0
        if request.WhichOneof("whom") == "session":
            revocations.revoke_session(principal, request.session)
        else:
            count = revocations.revoke_person(principal, request.person)
        principals.forget()
        return identity_pb2.RevokeAccessResponse(tokens=count)

    @requires(Action.AUDIT_READ)
    @in_thread
    def ListAuditEntries(
        self, principal: Principal, request: identity_pb2.ListAuditEntriesRequest
    ) -> identity_pb2.ListAuditEntriesResponse:
        wanted = audit.Filter(
            actor=request.actor,
            action=request.action,
            target=request.target,
            since=_asked(request, "since"),
            until=_asked(request, "until"),
        )
        page = audit.page(principal, wanted, size=request.page_size, token=request.page_token)
        return identity_pb2.ListAuditEntriesResponse(
            entries=[_entry(entry) for entry in page.items], next_page_token=page.next_page_token
        )


def _token(token: ApiToken) -> identity_pb2.ApiToken:
    return identity_pb2.ApiToken(
        id=str(token.pk),
        name=token.name,
        hint=token.hint,
        owner=token.owner,
        role=token.role,
        scopes=token.scopes,
        study=token.study or "",
        created_at=_time(token.created_at),
        expires_at=_time(token.expires_at),
        last_used_at=_time(token.last_used_at),
        sign_in_by=_time(token.sign_in_by),
    )


def _entry(entry: AuditEntry) -> identity_pb2.AuditEntry:
    return identity_pb2.AuditEntry(
        id=entry.pk,
        at=_time(entry.at),
        actor=entry.actor,
        credential=entry.credential,
        address=entry.address,
        action=entry.action,
        target=entry.target,
        detail=valid_json.dumps(entry.detail),
        before=valid_json.dumps(entry.before),
        after=valid_json.dumps(entry.after),
    )


def _asked(request: identity_pb2.ListAuditEntriesRequest, field: Literal["since", "until"]) -> datetime | None:
    if not request.HasField(field):
        return None
    time: Timestamp = getattr(request, field)
    try:
        return time.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(field, time.seconds, "a time in the years 1 to 9999") from None


def _time(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message
