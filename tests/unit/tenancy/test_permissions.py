"""The matrix of roles and actions, which every interface applies."""

from __future__ import annotations

from itertools import product

import pytest
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator

from service._gen import agent_pb2, identity_pb2, matching_pb2, tuning_pb2
from service.api.v1.urls import urlpatterns
from service.core.errors import Forbidden
from service.rpc.interceptors import declared_for
from service.rpc.servicers.agent import AgentServicer
from service.rpc.servicers.identity import IdentityServicer
from service.rpc.servicers.matching import MatchingServicer
from service.rpc.servicers.tuning import TuningServicer
from service.tenancy.permissions import BESIDE_ONE_STUDY, IN_ONE_STUDY, MATRIX, SCOPES, Action, may, require
from service.tenancy.principal import NO_TENANT, Principal, Role, Scope

SERVICERS = {
    tuning_pb2.DESCRIPTOR.services_by_name["TuningService"]: TuningServicer,
    agent_pb2.DESCRIPTOR.services_by_name["AgentService"]: AgentServicer,
    identity_pb2.DESCRIPTOR.services_by_name["IdentityService"]: IdentityServicer,
    matching_pb2.DESCRIPTOR.services_by_name["MatchingService"]: MatchingServicer,
}
METHODS = [(servicer, method) for service, servicer in SERVICERS.items() for method in service.methods]
# The schema itself is no secret, nor is how one signs in; an agent enrols with a token that is good for nothing else.
OPEN = {"schema", "session", "sign-in", "GetSignIn", "Enrol"}


def test_the_matrix_has_every_action_and_grows_with_the_role() -> None:
    assert set(MATRIX) == set(Action)
    allowed = {role: {action for action in Action if role in MATRIX[action]} for role in Role}
    assert allowed[Role.VIEWER] < allowed[Role.MEMBER] < allowed[Role.ADMIN] < allowed[Role.OPERATOR]
    assert allowed[Role.AGENT] == {
        Action.SESSION_READ,
        Action.AGENT_RUN,
        Action.MATCH_READ,
        Action.MATCH_REPORT,
    }
    # Whoever reads changes nothing.
    changing = {action for action in Action if not action.endswith(".read")}
    assert allowed[Role.VIEWER] & changing == {Action.TOKEN_OWN}
    assert SCOPES[Scope.READ] & changing == set()


@pytest.mark.parametrize(("role", "action"), list(product(Role, Action)))
def test_a_role_permits_exactly_the_actions_in_the_matrix(role: Role, action: Action) -> None:
    principal = Principal(1, "somebody", role)
    assert may(principal, action) == (role in MATRIX[action])
    if role in MATRIX[action]:
        require(principal, action)
        return
    with pytest.raises(Forbidden) as caught:
        require(principal, action)
    assert caught.value.code == "not_permitted"
    assert caught.value.data["action"] == action
    assert caught.value.data["roles"] == [one for one in Role if one in MATRIX[action]]
    assert str(action) in caught.value.message


@pytest.mark.parametrize(("scope", "action"), list(product(Scope, Action)))
def test_a_token_permits_only_the_actions_of_its_scope(scope: Scope, action: Action) -> None:
    principal = Principal(1, "somebody", Role.OPERATOR, frozenset({scope}))
    assert may(principal, action) == (action in SCOPES[scope])
    if action not in SCOPES[scope]:
        with pytest.raises(Forbidden, match="scope"):
            require(principal, action)
    # The role is the limit, whatever the token's scope.
    assert not may(Principal(1, "somebody", Role.VIEWER, frozenset({scope})), Action.STUDY_DELETE)


@pytest.mark.parametrize("action", Action)
def test_a_token_of_one_study_is_good_for_no_other(action: Action) -> None:
    principal = Principal(1, "somebody", Role.OPERATOR, study="mine")
    assert may(principal, action, "mine") == (action in IN_ONE_STUDY | BESIDE_ONE_STUDY)
    for other in ("other", None):
        assert may(principal, action, other) == (action in BESIDE_ONE_STUDY)
    if action not in BESIDE_ONE_STUDY:
        with pytest.raises(Forbidden, match="'mine'"):
            require(principal, action, "other")


def test_a_person_without_a_tenant_has_no_access() -> None:
    principal = Principal(NO_TENANT, "somebody", Role.OPERATOR)
    allowed = {action for action in Action if may(principal, action)}
    assert allowed == {Action.SESSION_READ, Action.TENANT_MANAGE}
    with pytest.raises(Forbidden, match="member of none"):
        require(principal, Action.STUDY_READ, "s")


def test_every_route_names_its_actions() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    described = 0
    for path, operations in schema["paths"].items():
        view = getattr(
            resolve(path.replace("{number}", "1").replace("{artifact_id}", "1").replace("{", "").replace("}", "")).func,
            "cls",
            None,
        )
        for method in set(operations) & {"get", "post", "put", "patch", "delete"}:
            described += 1
            if view is None:
                # A stream of events; it stands in the schema by a view that names its action.
                assert path.endswith("/events")
            else:
                action = view.actions[method.upper()]
                assert isinstance(action, Action) or path.rpartition("/")[2] in OPEN, path
    assert described >= 20
    routes = {str(pattern.pattern) for pattern in urlpatterns} - {"schema"}
    assert len(routes) == len(schema["paths"]), "a route that the schema does not have"


@pytest.mark.parametrize(("servicer", "method"), METHODS, ids=[method.full_name for _, method in METHODS])
def test_every_method_names_its_action(servicer: type, method: object) -> None:
    name: str = method.name  # type: ignore[attr-defined]
    fields = method.input_type.fields_by_name  # type: ignore[attr-defined]
    declared = declared_for(getattr(servicer, name))
    assert isinstance(declared.action, Action) or name in OPEN
    # A request that names a study is judged by that study.
    assert declared.study == ("study" if "study" in fields else "name" if "Study" in name and "name" in fields else "")
    # An enrolled agent calls only in its own name.
    by_agent = servicer is AgentServicer and name not in OPEN
    assert declared.agent == ("agent_id" if by_agent and "agent_id" in fields else "")
