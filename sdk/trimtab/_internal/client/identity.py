"""Calls about the caller, API tokens, enrolments, access and the audit trail."""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime

from trimtab._gen import identity_pb2 as pb
from trimtab._internal.connection.transport import Transport
from trimtab._internal.messages.identity import from_api_token, from_audit_entry, from_identity
from trimtab.errors import InvalidInput
from trimtab.identity import ApiToken, AuditEntry, Identity


class IdentityCalls:
    """The bodies of a client's methods about identities. `trimtab.Client` documents them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stub = transport.identity

    def who_am_i(self) -> Identity:
        return from_identity(self._transport.call(self._stub.WhoAmI, pb.WhoAmIRequest()))

    def create_token(self, name: str, scopes: Sequence[str], study: str | None, days: int) -> tuple[ApiToken, str]:
        request = pb.CreateApiTokenRequest(
            name=name, scopes=scopes, study=study or "", days=days, request_id=uuid.uuid4().hex
        )
        answer = self._transport.call(self._stub.CreateApiToken, request)
        return from_api_token(answer.token), answer.secret

    def list_tokens(self, everyone: bool) -> list[ApiToken]:
        answer = self._transport.call(self._stub.ListApiTokens, pb.ListApiTokensRequest(everyone=everyone))
        return [from_api_token(token) for token in answer.tokens]

    def revoke_token(self, token: str) -> None:
        self._transport.call(self._stub.RevokeApiToken, pb.RevokeApiTokenRequest(token=token))

    def enrol_agent(self, minutes: int) -> str:
        return self._transport.call(self._stub.CreateEnrolment, pb.CreateEnrolmentRequest(minutes=minutes)).secret

    def revoke_agent(self, agent_id: str) -> None:
        self._transport.call(self._stub.RevokeAgent, pb.RevokeAgentRequest(agent_id=agent_id))

    def revoke_access(self, person: str | None, session: str | None) -> int:
        if (person is None) == (session is None):
            raise InvalidInput.of("person", person, "exactly one of person and session")
        request = pb.RevokeAccessRequest()
        if session is not None:
            request.session = session
        if person is not None:
            request.person = person
        return self._transport.call(self._stub.RevokeAccess, request).tokens

    def audit(
        self, actor: str, action: str, target: str, since: datetime | None, until: datetime | None
    ) -> Iterator[AuditEntry]:
        request = pb.ListAuditEntriesRequest(actor=actor, action=action, target=target)
        if since is not None:
            request.since.FromDatetime(since.astimezone())
        if until is not None:
            request.until.FromDatetime(until.astimezone())
        while True:
            answer = self._transport.call(self._stub.ListAuditEntries, request)
            yield from map(from_audit_entry, answer.entries)
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token
