"""Studies, parameters and values of OSS Vizier in the terms of the service, and back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf import json_format

from trimtab._gen import vizier_pb2 as vz
from trimtab.errors import InvalidInput, TrimtabError
from trimtab.integrations.foreign_names import metric_name, parameter_name, study_name
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.space import Categorical, Float, Int, Ordinal, Parameter, Scalar
from trimtab.study import Study

_Spec = vz.StudySpec.ParameterSpec
# Vizier's algorithms that the service has; the service chooses for the others.
_ALGORITHMS = {
    "RANDOM_SEARCH": "random",
    "QUASI_RANDOM_SEARCH": "sobol",
    "GRID_SEARCH": "grid",
    "NSGA2": "nsga2",
    "CMA_ES": "cmaes",
}
_MARK = "A study of an OSS Vizier client.\n\n    "
NAME = re.compile(r"owners/([^/]+)/studies/([^/]+)")
# The service's limit for a description, which holds Vizier's specification.
_DESCRIPTION_LIMIT = 10_000


class Unsupported(TrimtabError):
    """The service has nothing that corresponds to a part of Vizier's request."""


def name_of(owner: str, study_id: str) -> str:
    """Return the name of the service's study."""
    return study_name(f"{owner}.{study_id}")


def describe(study: vz.Study) -> str:
    """Return the description of the service's study: Vizier's study as JSON, from which `described` reads it.

    Raises:
        InvalidInput: it is too long.
    """
    text = _MARK + json_format.MessageToJson(study, indent=None)
    if len(text) > _DESCRIPTION_LIMIT:
        allowed = f"a specification of at most {_DESCRIPTION_LIMIT - len(_MARK)} characters as JSON"
        raise InvalidInput.of("study_spec", f"{len(text) - len(_MARK)} characters", allowed)
    return text


def described(study: Study) -> vz.Study | None:
    """Return Vizier's study as its client has created it; None if it is not from such a client.

    Any member of the tenant can write such a description, so it may be damaged or name another study.
    """
    description = study.spec.description
    if not description.startswith(_MARK):
        return None
    try:
        kept = json_format.Parse(description.removeprefix(_MARK), vz.Study())
    except (json_format.ParseError, RecursionError, ValueError):
        return None
    names = NAME.fullmatch(kept.name)
    return kept if names is not None and name_of(*names.groups()) == study.name else None


def settings(spec: vz.StudySpec) -> dict[str, Any]:
    """Return the arguments of `Client.create_study` for a specification.

    Raises:
        Unsupported: the service has nothing that corresponds to a part of it.
        InvalidInput: it has no objective, or no parameter with several values.
    """
    space = list(_space(spec.parameters, None))
    names = [parameter.name for parameter in space]
    for name in names:
        if names.count(name) > 1:
            raise Unsupported("parameter_repeated", f"Parameter {name!r} is there twice, under several conditions.")
    objectives = [_objective(metric) for metric in spec.metrics if not metric.HasField("safety_config")]
    if not objectives:
        raise InvalidInput.of("metrics", [metric.metric_id for metric in spec.metrics], "at least one objective")
    if not space:
        raise InvalidInput.of("parameters", [], "at least one parameter with several values")
    return {
        "space": space,
        "objectives": objectives,
        "outcome_constraints": [_safety(metric) for metric in spec.metrics if metric.HasField("safety_config")],
        "algorithm": _ALGORITHMS.get(spec.algorithm, "auto"),
        "noisy": spec.observation_noise != vz.StudySpec.LOW,
        "pruning": ["default"] if spec.HasField("default_stopping_spec") else [],
    }


def _objective(metric: vz.StudySpec.MetricSpec) -> Objective:
    name = metric_name(metric.metric_id)
    return Maximize(name) if metric.goal == vz.StudySpec.MetricSpec.MAXIMIZE else Minimize(name)


def _safety(metric: vz.StudySpec.MetricSpec) -> str:
    sign = ">=" if metric.goal == vz.StudySpec.MetricSpec.MAXIMIZE else "<="
    return f"`{metric_name(metric.metric_id)}` {sign} {metric.safety_config.safety_threshold!r}"


def _space(specs: Iterable[_Spec], when: tuple[str, list[Scalar]] | None) -> Iterator[Parameter]:
    for spec in specs:
        parameter = _parameter(spec, when)
        if parameter is None:
            if spec.conditional_parameter_specs:
                raise Unsupported("parent_constant", f"Parameter {spec.parameter_id!r} has children and one value.")
            continue
        yield parameter
        for child in spec.conditional_parameter_specs:
            condition = child.WhichOneof("parent_value_condition")
            values = [] if condition is None else getattr(child, condition).values
            yield from _space([child.parameter_spec], (parameter.name, list(values)))


def _parameter(spec: _Spec, when: tuple[str, list[Scalar]] | None) -> Parameter | None:
    """Return a parameter; None if it has one value only."""
    name, log = parameter_name(spec.parameter_id), spec.scale_type == _Spec.UNIT_LOG_SCALE
    kind = spec.WhichOneof("parameter_value_spec")
    if constant(spec) is not None:
        return None
    if spec.scale_type == _Spec.UNIT_REVERSE_LOG_SCALE:
        raise Unsupported(
            "reverse_log_scale", f"Parameter {name!r} has a reverse log scale. Use a linear or log scale."
        )
    if kind is None:
        raise InvalidInput.of(f"parameters.{name}", "no range", "a range or a list of values")
    domain = getattr(spec, kind)
    default = domain.default_value.value if domain.HasField("default_value") else None
    if kind == "double_value_spec":
        return Float(name, domain.min_value, domain.max_value, log=log, default=default, when=when)
    if kind == "integer_value_spec":
        return Int(name, domain.min_value, domain.max_value, log=log, default=default, when=when)
    listed = Categorical if kind == "categorical_value_spec" else Ordinal
    return listed(name, list(domain.values), default=default, when=when)


def constant(spec: _Spec) -> Scalar | None:
    """Return the value of a parameter that has only one; None if it has several."""
    kind = spec.WhichOneof("parameter_value_spec")
    if kind is None:
        return None
    domain = getattr(spec, kind)
    found: Scalar | None = None
    if kind in ("double_value_spec", "integer_value_spec"):
        found = domain.min_value if domain.min_value == domain.max_value else None
    elif len(domain.values) == 1:
        found = domain.values[0]
    return found


def parameters(spec: vz.StudySpec, params: Mapping[str, Any]) -> list[vz.Trial.Parameter]:
    """Return the values of a configuration as Vizier has them, with the constants."""
    made = []
    for one in _all(spec.parameters):
        own, fixed = parameter_name(one.parameter_id), constant(one)
        if own not in params and fixed is None:
            continue
        value = params.get(own, fixed)
        parameter = vz.Trial.Parameter(parameter_id=one.parameter_id)
        if isinstance(value, str):
            parameter.value.string_value = value
        else:
            parameter.value.number_value = value
        made.append(parameter)
    return made


def params(spec: vz.StudySpec, given: Iterable[vz.Trial.Parameter]) -> dict[str, Scalar]:
    """Return a configuration of the service from Vizier's values."""
    known = {one.parameter_id: one for one in _all(spec.parameters)}
    found: dict[str, Scalar] = {}
    for parameter in given:
        one = known.get(parameter.parameter_id)
        if one is None:
            raise InvalidInput.of("parameters", parameter.parameter_id, f"one of {', '.join(known)}")
        if constant(one) is not None:
            continue
        value: Scalar = getattr(parameter.value, parameter.value.WhichOneof("kind") or "number_value")
        if one.HasField("integer_value_spec") and isinstance(value, float) and value.is_integer():
            value = int(value)
        found[parameter_name(parameter.parameter_id)] = value
    return found


def _all(specs: Iterable[_Spec]) -> Iterator[_Spec]:
    for spec in specs:
        yield spec
        yield from _all(child.parameter_spec for child in spec.conditional_parameter_specs)


def metrics(measurement: vz.Measurement) -> dict[str, float]:
    """Return the metrics of a measurement as the service has them."""
    return {metric_name(metric.metric_id): metric.value for metric in measurement.metrics}


def measurement(spec: vz.StudySpec, values: Mapping[str, float]) -> vz.Measurement:
    """Return a measurement with Vizier's names of the metrics."""
    names = {metric_name(metric.metric_id): metric.metric_id for metric in spec.metrics}
    listed = [
        vz.Measurement.Metric(metric_id=names.get(name, name), value=value) for name, value in sorted(values.items())
    ]
    return vz.Measurement(metrics=listed)
