"""The check of a new study on agents: its component has the application and the metrics, and accepts the space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.core.errors import InvalidInput, shorten
from service.fleet.spaces import Version, check_any, check_values, versions
from service.planning.component_check import places_of
from service.studies.specs import StudySpec
from service.tenancy.principal import Principal

# A list of names in an error is cut to this number of characters.
_LONGEST_LIST = 500


def check_offer(principal: Principal, spec: StudySpec, places: Mapping[str, str]) -> None:
    """Check that some agent's version of a study's component has all that the study names.

    A study without a component passes. So does a study whose component no agent offers, because it cannot be checked.
    `places`: as in `check_space`.

    Raises InvalidInput (`unknown_application`, `unknown_metric`, `outside_component`), by the version that an agent
    offered last.
    """
    execution = spec.execution
    if execution is None:
        return
    found = versions(principal, execution.component, execution.digest)
    check_any(found, lambda offered: _check_names(spec, execution.application, offered))
    if spec.live is not None:
        check_any(found, lambda offered: _check_live(spec, offered))
    check_values(spec, found, places)


def _check_names(spec: StudySpec, application: str, offered: Version) -> None:
    applications: Sequence[str] = offered.get("applications", ())
    if application and applications and application not in applications:
        raise _unknown("application", "execution.application", application, offered["name"], applications)
    metrics: Sequence[str] = offered.get("metrics", ())
    for place, metric in _metrics(spec):
        # An agent that sends no metrics has not said which it measures.
        if metrics and metric not in metrics:
            raise _unknown("metric", place, metric, offered["name"], metrics)


def _check_live(spec: StudySpec, offered: Version) -> None:
    """Check that a component can be tuned while it serves. One of an earlier agent has not said so."""
    live = offered.get("live")
    if live is None:
        return
    places = places_of(spec)
    for name in spec.space.names():
        if name in live["forbidden"]:
            allowed = f"parameters without {', '.join(live['forbidden'])}, which the component keeps in live trials"
            raise InvalidInput(places[name], name, allowed, code="forbidden_live")


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
