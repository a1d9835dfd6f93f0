"""The check of a new study on agents: its component has the application and the metrics, and accepts the space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.core.errors import InvalidInput, shorten
from service.fleet.models import Agent
from service.fleet.spaces import check_space
from service.studies.specs import StudySpec
from service.tenancy import access
from service.tenancy.principal import Principal

# A list of names in an error is cut to so many characters.
_LONGEST_LIST = 500


def check_offer(principal: Principal, spec: StudySpec, places: Mapping[str, str]) -> None:
    """Check that some agent's version of a study's component has all that the study names.

    A study without a component passes, and one whose component no agent offers, because it cannot be checked.
    `places`: as in `check_space`.

    Raises InvalidInput (`unknown_application`, `unknown_metric`, `outside_component`), by the version that an agent
    offered last.
    """
    execution = spec.execution
    if execution is None:
        return
    refusal: InvalidInput | None = None
    for offered in _versions(principal, execution.component, execution.digest):
        try:
            _check_names(spec, execution.application, offered)
            refusal = None
            break
        except InvalidInput as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    check_space(principal, spec, places)


def _versions(principal: Principal, component: str, digest: str) -> list[Mapping[str, Any]]:
    """Return each version of a component once, the version of the latest agent first."""
    agents = access.rows(Agent, principal).order_by("-last_seen_at").values_list("components", flat=True)
    named = (one for components in agents for one in components if one["name"] == component)
    found: dict[str, Mapping[str, Any]] = {}
    for one in named:
        if digest in ("", one["digest"]):
            found.setdefault(one["digest"], one)
    return list(found.values())


def _check_names(spec: StudySpec, application: str, offered: Mapping[str, Any]) -> None:
    applications: Sequence[str] = offered.get("applications", ())
    if application and applications and application not in applications:
        raise _unknown("application", "execution.application", application, offered["name"], applications)
    metrics: Sequence[str] = offered.get("metrics", ())
    for place, metric in _metrics(spec):
        # An agent that sends no metrics has not said which it measures.
        if metrics and metric not in metrics:
            raise _unknown("metric", place, metric, offered["name"], metrics)


def _metrics(spec: StudySpec) -> Iterator[tuple[str, str]]:
    """Yield the field and the name of each metric that the study needs."""
    for index, objective in enumerate(spec.problem.objectives):
        yield f"objectives[{index}].metric", objective.metric
    for index, constraint in enumerate(spec.problem.outcome_constraints):
        for name in sorted(constraint.names):
            yield f"outcome_constraints[{index}]", name


def _unknown(kind: str, field: str, name: str, component: str, known: Sequence[str]) -> InvalidInput:
    allowed = shorten(", ".join(known), _LONGEST_LIST)
    message = f"{field}: component {component!r} has no {kind} {shorten(name, 100)!r}. Use {allowed}."
    return InvalidInput(field, name, allowed, message=message, code=f"unknown_{kind}")
