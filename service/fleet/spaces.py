"""Checks of the spaces of studies on agents: the agents' components must accept each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from service.core.errors import InvalidInput
from service.core.offered import check_omitted, check_within
from service.core.parameters import Parameter, parameter_from_json
from service.fleet import selectors
from service.fleet.models import Agent
from service.studies.specs import StudySpec
from service.tenancy import access
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

# A component in the words of an agent (JSON).
Version: TypeAlias = Mapping[str, Any]

T = TypeVar("T")


def check_space(principal: Principal, spec: StudySpec, places: Mapping[str, str]) -> None:
    """Check that some agent's version of the study's component accepts all values of these parameters.

    `places`: the parameters' fields in the request, for errors; a parameter that was removed from the space must have
    the component's default. A study without a component passes. So does a study whose component no agent offers or
    whose space the agents do not send, because its values cannot be checked.

    Raises InvalidInput (`outside_component`), by the version that an agent offered last.
    """
    if spec.execution is not None:
        check_values(spec, versions(principal, spec.execution.component, spec.execution.digest), places)


def check_values(spec: StudySpec, offered: Sequence[Version], places: Mapping[str, str]) -> None:
    """Check as `check_space` does that one of these versions of the study's component accepts all values."""
    spaces = [_parameters(one.get("space", ())) for one in offered]
    if not all(spaces):
        return
    omitted = spec.whole_space.left
    sent = {name: where for name, where in places.items() if name in spec.space.names()}
    removed = {name: where for name, where in places.items() if name in omitted}

    def check(space: Mapping[str, Parameter]) -> None:
        check_within(spec.space, space, sent)
        check_omitted(omitted, space, removed)

    check_any(spaces, check)


def check_any(offered: Iterable[T], check: Callable[[T], None]) -> None:
    """Run a check on each version until one passes, if there are any. Raises the InvalidInput of the first."""
    refusal: InvalidInput | None = None
    for one in offered:
        try:
            check(one)
        except InvalidInput as error:
            refusal = refusal or error
        else:
            return
    if refusal is not None:
        raise refusal


def offered_space(principal: Principal, component: str, digest: str) -> list[dict[str, Any]] | None:
    """Return the parameters (JSON) of a component as agents offer it; None if no agent offers it.

    Versions of online agents precede the others. Raises InvalidInput if versions differ in their parameters and
    `digest` does not choose one.
    """
    require(principal, Action.AGENT_READ)
    found: dict[bool, dict[str, list[dict[str, Any]]]] = {True: {}, False: {}}
    for agent in selectors.list_agents(principal):
        for one in agent.components:
            if one["name"] == component and digest in ("", one["digest"]):
                found[agent.online][str(one["digest"])] = list(one.get("space", ()))
    versions = found[True] or found[False]
    spaces = list(versions.values())
    if any(space != spaces[0] for space in spaces):
        raise InvalidInput("digest", digest, f"one of {', '.join(versions)}: agents differ in {component}")
    return spaces[0] if spaces else None


def versions(principal: Principal, component: str, digest: str) -> list[Version]:
    """Return each version of a component as agents offer it, the version of the latest agent first."""
    agents = access.rows(Agent, principal).order_by("-last_seen_at").values_list("components", flat=True)
    found: dict[str, Version] = {}
    for one in (one for components in agents for one in components if one["name"] == component):
        if digest in ("", one["digest"]):
            found.setdefault(one["digest"], one)
    return list(found.values())


def _parameters(space: list[Mapping[str, Any]]) -> dict[str, Parameter]:
    """Return the parameters by name; empty if the agent's description of its space cannot be parsed."""
    try:
        return {str(one["name"]): parameter_from_json(one, "space").checked("space") for one in space}
    except InvalidInput:
        return {}
