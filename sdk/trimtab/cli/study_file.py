"""Study files: a study's specification as YAML or JSON, as people write it.

name: flags-1                        # may be left out: then --name, or one is made up
component: gcc-flags                 # with application: runs on agents; without both: ask/tell
application: kernels
parameters:                          # of an ask/tell study: all of them; with a component: changes to its own
  x: {type: float, min: 1e-3, max: 10, log: true}
  n: {type: int, min: 1, max: 16, step: 1, default: 4}
  block: {type: ordinal, values: [4, 16, 64, 256]}
  alg: {type: categorical, values: [a, b]}
  arenas: {type: int, min: 1, max: 8, condition: {parent: alg, values: [a]}}
  huge: {type: boolean}
only: [x, n]                         # with a component: the others stay at their defaults
constraints: ["n * 4 <= block"]
objectives: [{minimize: seconds, unit: s}]
algorithm: auto                      # or gp, ga, random, ..., or {name: gp, options: {...}}
seed: 0
noisy: true
budget: {max_trials: 30, max_time: 2m, max_node_hours: 5}
outcome_constraints: ["memory_mb <= 4096"]
resampling: adaptive                 # or {name: static, options: {n: 3}}
estimator: median
pruning: [default, {name: limit, options: {seconds: 60}}]
stopping: {rule: best_improvement, threshold: 0.01, trials: 20}
final_check: true                    # or {width: 0.05, max_trials: 20, level: 0.95}
parallelism: 1
trial_timeout: 60s
placement: {exclusive: true, spread: true}   # each trial alone on its node; one configuration's on different nodes
start_from: [flags-0]                # earlier studies: their best configurations, 5 in all, are measured first
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import yaml

from trimtab.errors import InvalidInput, JsonValue
from trimtab.method import FinalCheck, Policy
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Scalar, condition
from trimtab.spec import Placement, StudySpec

Data: TypeAlias = Mapping[str, JsonValue]
Number = TypeVar("Number", int, float)

KEYS = (
    "name", "component", "application", "digest", "parameters", "only", "constraints", "objectives", "algorithm",
    "seed", "noisy", "budget", "parallelism", "trial_timeout", "outcome_constraints", "resampling", "estimator",
    "pruning", "stopping", "final_check", "placement", "start_from",
)  # fmt: skip
PARAMETER_KEYS = {
    "float": ("min", "max", "log", "step", "factor"),
    "int": ("min", "max", "log", "step", "factor"),
    "ordinal": ("values",),
    "categorical": ("values",),
    "boolean": (),
}
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class StudyFile:
    """What a study file says. Times are in seconds."""

    name: str | None
    component: str | None
    application: str
    digest: str
    parameters: Mapping[str, Data]
    only: Sequence[str] | None
    constraints: Sequence[str]
    objectives: Sequence[Objective]
    algorithm: str
    algorithm_options: Data
    seed: int
    noisy: bool
    max_trials: int | None
    max_time: float | None
    parallelism: int
    trial_timeout: float | None
    placement: Placement
    max_node_hours: float | None
    outcome_constraints: Sequence[str]
    resampling: Policy | None
    estimator: Policy | None
    pruning: Sequence[Policy]
    stopping: Data | None
    final_check: FinalCheck | None
    start_from: Sequence[str]

    def space(self, component: Sequence[Parameter] = ()) -> list[Parameter]:
        """The search space: the component's with the file's changes, or the file's own.

        Raises:
            InvalidInput: a parameter of the file is not one of the component's, or is not well described.
        """
        described = {parameter.name: describe(parameter) for parameter in component}
        for name, changes in self.parameters.items():
            if self.component is not None and name not in described:
                raise InvalidInput.of("parameters", name, "the component's own: " + ", ".join(described))
            own = described.get(name, {})
            # of another type, such as a list of values in place of a range, it is described anew
            kept = own if changes.get("type", own.get("type")) == own.get("type") else {}
            described[name] = {**kept, **changes}
        if self.only is not None:
            for name in self.only:
                if name not in described:
                    raise InvalidInput.of("only", name, ", ".join(described))
            described = {name: described[name] for name in described if name in self.only}
        return [parse_parameter(name, data) for name, data in described.items()]


def load(path: Path) -> StudyFile:
    """Reads a study file.

    Raises:
        InvalidInput: it cannot be read, or has a field that is not allowed; the message has file, field and value.
    """
    try:
        content = yaml.load(path.read_text(), _Loader)  # a safe loader, but for its numbers  # nosec B506
    except OSError as error:
        raise InvalidInput("unreadable_file", f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInput("unreadable_file", f"{path} is not YAML: {' '.join(str(error).split())}") from error
    try:
        return parse(content)
    except InvalidInput as error:
        raise InvalidInput(error.code, f"{path}: {error.message}", data=error.data) from error


def parse(content: object) -> StudyFile:
    """Reads the content of a study file. Raises InvalidInput."""
    data = _mapping("the file", content, KEYS)
    algorithm = data.get("algorithm", "auto")
    if isinstance(algorithm, str):
        algorithm = {"name": algorithm}
    algorithm = _mapping("algorithm", algorithm, ("name", "options"))
    budget = _mapping("budget", data.get("budget", {}), ("max_trials", "max_time", "max_node_hours"))
    only = data.get("only")
    parsed = StudyFile(
        name=_text("name", data["name"]) if "name" in data else None,
        component=_text("component", data["component"]) if "component" in data else None,
        application=_text("application", data.get("application", "")),
        digest=_text("digest", data.get("digest", "")),
        parameters={
            name: _mapping(f"parameters.{name}", value, None)
            for name, value in _mapping("parameters", data.get("parameters", {}), None).items()
        },
        only=None
        if only is None
        else [_text(f"only[{index}]", item) for index, item in enumerate(_list("only", only))],
        constraints=_texts("constraints", data.get("constraints", [])),
        objectives=[
            parse_objective(f"objectives[{index}]", item)
            for index, item in enumerate(_list("objectives", data.get("objectives", [])))
        ],
        algorithm=_text("algorithm.name", algorithm.get("name", "auto")),
        algorithm_options=_mapping("algorithm.options", algorithm.get("options", {}), None),
        seed=_whole("seed", data.get("seed", 0)),
        noisy=_flag("noisy", data.get("noisy", True)),
        max_trials=_whole("budget.max_trials", budget["max_trials"]) if "max_trials" in budget else None,
        max_time=_time("budget.max_time", budget["max_time"]) if "max_time" in budget else None,
        parallelism=_whole("parallelism", data.get("parallelism", 1)),
        trial_timeout=_time("trial_timeout", data["trial_timeout"]) if "trial_timeout" in data else None,
        placement=_placement(data.get("placement", {})),
        max_node_hours=_number("budget.max_node_hours", budget["max_node_hours"])
        if "max_node_hours" in budget
        else None,
        outcome_constraints=_texts("outcome_constraints", data.get("outcome_constraints", [])),
        resampling=_policy("resampling", data["resampling"]) if data.get("resampling") is not None else None,
        estimator=_policy("estimator", data["estimator"]) if data.get("estimator") is not None else None,
        pruning=[
            _policy(f"pruning[{index}]", item) for index, item in enumerate(_list("pruning", data.get("pruning", [])))
        ],
        stopping=_mapping("stopping", data["stopping"], None) if data.get("stopping") is not None else None,
        final_check=_final_check(data.get("final_check")),
        start_from=_texts("start_from", data.get("start_from", [])),
    )
    if not parsed.objectives:
        raise InvalidInput.of("objectives", [], "at least one, as in [{minimize: seconds}]")
    if parsed.component is None and not parsed.parameters:
        raise InvalidInput.of("parameters", {}, "at least one, or a component that has some")
    if parsed.component is None:
        parsed.space()  # so that a wrong parameter is found with the rest
    return parsed


def parse_objective(field: str, data: object) -> Objective:
    """{minimize: METRIC, unit: U} or {maximize: METRIC, unit: U}."""
    given = _mapping(field, data, ("minimize", "maximize", "unit"))
    unit = _text(f"{field}.unit", given.get("unit", ""))
    match given:
        case {"minimize": metric} if "maximize" not in given:
            return Minimize(_text(f"{field}.minimize", metric), unit)
        case {"maximize": metric} if "minimize" not in given:
            return Maximize(_text(f"{field}.maximize", metric), unit)
    raise InvalidInput.of(field, data, "{minimize: METRIC} or {maximize: METRIC}")


def parse_parameter(name: str, data: Data) -> Parameter:
    """A parameter out of its description. Raises InvalidInput with the field at fault."""
    field = f"parameters.{name}"
    kind = "boolean" if data.get("type") == "bool" else data.get("type")
    if not isinstance(kind, str) or kind not in PARAMETER_KEYS:
        raise InvalidInput.of(f"{field}.type", kind, ", ".join(PARAMETER_KEYS))
    _mapping(field, data, ("type", "default", "condition", *PARAMETER_KEYS[kind]))
    when = None
    if "condition" in data:
        given = _mapping(f"{field}.condition", data["condition"], ("parent", "values"))
        parent_values = _scalars(f"{field}.condition.values", given.get("values"))
        when = (_text(f"{field}.condition.parent", given.get("parent")), parent_values)

    def number(key: str) -> float:
        return _number(f"{field}.{key}", data.get(key))

    def whole(key: str) -> int:
        return _whole(f"{field}.{key}", data.get(key))

    def optional(read: Callable[[str], Number], key: str) -> Number | None:
        return read(key) if data.get(key) is not None else None

    match kind:
        case "float":
            return Float(
                name,
                number("min"),
                number("max"),
                log=_flag(f"{field}.log", data.get("log", False)),
                step=optional(number, "step"),
                factor=optional(number, "factor"),
                default=optional(number, "default"),
                when=when,
            )
        case "int":
            return Int(
                name,
                whole("min"),
                whole("max"),
                log=_flag(f"{field}.log", data.get("log", False)),
                step=optional(whole, "step"),
                factor=optional(number, "factor"),
                default=optional(whole, "default"),
                when=when,
            )
        case "boolean":
            default = data.get("default")
            return Bool(name, default=None if default is None else _flag(f"{field}.default", default), when=when)
    values = _scalars(f"{field}.values", data.get("values"))
    listed = _scalars(f"{field}.default", [data["default"]])[0] if "default" in data else None
    return (Ordinal if kind == "ordinal" else Categorical)(name, values, default=listed, when=when)


def describe(parameter: Parameter) -> dict[str, JsonValue]:
    """A parameter's description, as `parse_parameter` reads it."""
    data: dict[str, JsonValue]
    match parameter:
        case Float() | Int():
            data = {"type": "float" if isinstance(parameter, Float) else "int"}
            data |= {"min": parameter.min, "max": parameter.max}
            if parameter.log:
                data["log"] = True
            if parameter.step is not None:
                data["step"] = parameter.step
            if parameter.factor is not None:
                data["factor"] = parameter.factor
        case Ordinal() | Categorical():
            data = {"type": "ordinal" if isinstance(parameter, Ordinal) else "categorical"}
            data["values"] = list(parameter.values)
        case Bool():
            data = {"type": "boolean"}
    if parameter.default is not None:
        data["default"] = parameter.default
    requirement = condition(parameter)
    if requirement is not None:
        data["condition"] = {"parent": requirement[0], "values": list(requirement[1])}
    return data


def dump(name: str, spec: StudySpec) -> dict[str, JsonValue]:
    """A study's specification, as `parse` reads it."""
    data: dict[str, JsonValue] = {"name": name}
    if spec.execution is not None:
        data |= {"component": spec.execution.component, "application": spec.execution.application}
        if spec.execution.digest:
            data["digest"] = spec.execution.digest
    data["parameters"] = {parameter.name: describe(parameter) for parameter in spec.space}
    data["constraints"] = list(spec.constraints)
    data["objectives"] = [_describe_objective(objective) for objective in spec.objectives]
    data["algorithm"] = {"name": spec.algorithm, "options": dict(spec.algorithm_options)}
    data |= {"seed": spec.seed, "noisy": spec.noisy}
    budget: dict[str, JsonValue] = {}
    if spec.max_trials is not None:
        budget["max_trials"] = spec.max_trials
    if spec.max_time is not None:
        budget["max_time"] = spec.max_time
    if spec.max_node_hours is not None:
        budget["max_node_hours"] = spec.max_node_hours
    data["budget"] = budget
    if spec.outcome_constraints:
        data["outcome_constraints"] = list(spec.outcome_constraints)
    if spec.resampling is not None:
        data["resampling"] = _describe_policy(spec.resampling)
    if spec.estimator is not None:
        data["estimator"] = _describe_policy(spec.estimator)
    if spec.pruning:
        data["pruning"] = [_describe_policy(policy) for policy in spec.pruning]
    if spec.stopping is not None:
        data["stopping"] = dict(spec.stopping)
    if spec.final_check is not None:
        data["final_check"] = {key: value for key, value in asdict(spec.final_check).items() if value is not None}
    if spec.execution is not None:
        data["parallelism"] = spec.execution.parallelism
        if spec.execution.trial_timeout is not None:
            data["trial_timeout"] = spec.execution.trial_timeout
        data["placement"] = asdict(spec.execution.placement)
    if spec.start_from:
        data["start_from"] = list(spec.start_from)
    return data


def _describe_policy(policy: Policy) -> dict[str, JsonValue]:
    return {"name": policy.name, "options": dict(policy.options)}


def _describe_objective(objective: Objective) -> dict[str, JsonValue]:
    goal = "maximize" if isinstance(objective, Maximize) else "minimize"
    data: dict[str, JsonValue] = {goal: objective.metric}
    return data | ({"unit": objective.unit} if objective.unit else {})


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of its version 1.2: 1e-3 is a number, and on, off, yes and no are texts."""


# Resolvers are kept by first character: drop those of version 1.1 for numbers and booleans, and put in better ones.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("bool", "float", "int")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)
# SafeLoader's own reads a leading zero as octal.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))


def _mapping(field: str, value: object, keys: Sequence[str] | None) -> dict[str, JsonValue]:
    """The mapping, whose keys are texts and, unless `keys` is None, among `keys`."""
    if not isinstance(value, dict):
        raise InvalidInput.of(field, value, "a mapping" + (f" with {', '.join(keys)}" if keys else ""))
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            raise InvalidInput.of(f"a key of {field}", key, "a text" if keys is None else ", ".join(keys))
    return value


def _list(field: str, value: object) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InvalidInput.of(field, value, "a list")
    return value


def _texts(field: str, value: object) -> list[str]:
    return [_text(f"{field}[{index}]", item) for index, item in enumerate(_list(field, value))]


def _policy(field: str, value: object) -> Policy:
    """NAME, or {name: NAME, options: {...}}."""
    given = _mapping(field, {"name": value} if isinstance(value, str) else value, ("name", "options"))
    return Policy(
        _text(f"{field}.name", given.get("name")), **_mapping(f"{field}.options", given.get("options", {}), None)
    )


def _final_check(value: object) -> FinalCheck | None:
    if value is None or isinstance(value, bool):
        return FinalCheck() if value else None
    given = _mapping("final_check", value, ("width", "max_trials", "level"))
    return FinalCheck(
        width=_number("final_check.width", given["width"]) if "width" in given else None,
        max_trials=_whole("final_check.max_trials", given["max_trials"]) if "max_trials" in given else None,
        level=_number("final_check.level", given["level"]) if "level" in given else None,
    )


def _placement(value: object) -> Placement:
    given = _mapping("placement", value, ("exclusive", "spread"))
    return Placement(**{name: _flag(f"placement.{name}", flag) for name, flag in given.items()})


def _scalars(field: str, values: object) -> list[Scalar]:
    scalars: list[Scalar] = []
    for value in _list(field, values):
        if not isinstance(value, (bool, int, float, str)):
            raise InvalidInput.of(field, value, "a number, a text or a boolean")
        scalars.append(value)
    return scalars


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput.of(field, value, "a text")
    return value


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput.of(field, value, "a number")
    return value


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput.of(field, value, "a whole number")
    return value


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput.of(field, value, "true or false")
    return value


def _time(field: str, value: object) -> float:
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    match = re.fullmatch(r"(\d+(?:\.\d*)?) *([a-z]*)", text)
    if match is None or match[2] not in UNITS:
        raise InvalidInput.of(field, value, "a time such as 90, 90s, 2m or 1.5h")
    return float(match[1]) * UNITS[match[2]]
