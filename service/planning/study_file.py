"""Study files: the specification of a study as YAML (or JSON), as people write it.

Most keys of the file are keys of the spec. `studies/specs.py` declares them with their words and checks, and `KEYS`
follows from these declarations. The service reads files with it, writes a study back as a file, and tells the console
which keys there are. This module checks the file's own forms: units of time, objectives, policies by name, and changes
to a component's parameters. An error names the place in the file, and the line where it is known.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from service.core.errors import InvalidInput, JsonValue, NotFound, shorten
from service.planning.chosen_parameters import choose, fix
from service.studies.models import Study
from service.studies.spec_keys import Key, record_of
from service.studies.specs import LONGEST_SECONDS, StudySpec, budget_of, spec_of
from service.tenancy.principal import Principal
from trimtab_components import quantities
from trimtab_components.reader import LONGEST_INTEGER, Reader

Json: TypeAlias = dict[str, Any]

LONGEST = 256 * 1024
# The keys of a value, from the outermost one. Errors show them, and each value below has them in its own place.
LONGEST_PLACE = 500


@dataclass(frozen=True, slots=True)
class FileKey:
    """A key of the file. A dot in `path` separates the levels. `place` is its path in the spec. `default` is the value
    that a file need not repeat."""

    path: str
    kind: str
    doc: str
    place: str
    default: JsonValue = None


# Keys that the file has in a form of its own.
_OWN = (
    FileKey("name", "text", "Name of the study. The command line makes one up where it is missing.", "name"),
    FileKey(
        "parameters",
        "parameters",
        "Search space: {x: {type: float, min: 1e-3, max: 10, log: true}}; types: float, int, ordinal, categorical, "
        "boolean. `unit: MiB` is shown with the values. With a component: changes to the component's parameters.",
        "space.parameters",
    ),
    FileKey("fixed", "mapping", "Values of parameters that the search does not change: {x: 0.5}.", "fixed"),
    FileKey(
        "only", "texts", "Names of the component's parameters that are tuned; the others keep their defaults.", "only"
    ),
    FileKey(
        "context",
        "context",
        "Parameters that are observed and never chosen, described as in parameters: {load: {type: categorical, values: "
        "[idle, high]}}. `at` names the values of a number for which settings are wanted: {at: [0.6, 0.9]}.",
        "context",
    ),
)
# A file begins with these keys, in this order.
_FIRST = (
    *("name", "description", "component", "application", "digest", "parameters", "fixed", "only", "context"),
    *("constraints", "objectives", "algorithm", "seed", "noisy", "budget", "outcome_constraints"),
)


def keys_of(spec: type[StudySpec]) -> Sequence[FileKey]:
    """Return the keys of files that describe such a spec, in the order in which they are written."""
    found = [*_OWN, *_declared(record_of(spec).keys, "", "")]
    first = {name: place for place, name in enumerate(_FIRST)}
    return sorted(found, key=lambda key: first.get(key.path.partition(".")[0], len(first)))


def _declared(keys: Sequence[Key], above: str, outer: str) -> Iterator[FileKey]:
    """Yield the keys of files for these. Their paths in the file begin with `above`, those in the spec with `outer`."""
    for key in keys:
        if key.in_file is None:
            continue
        if key.kind.name == "record":
            inside = f"{above}{key.in_file}." if key.in_file else above
            yield from _declared(key.kind.keys, inside, f"{outer}{key.name}.")
        else:
            doc = f"{key.words[:-1]}: {key.file_form}." if key.file_form else key.words
            yield FileKey(above + key.in_file, key.kind.name, doc, outer + key.name, key.file_default)


KEYS = keys_of(StudySpec)
# Keys that are read together.
_OF_SPACE = ("name", "only", "fixed", "parameters", "context")

OfferedSpace: TypeAlias = Callable[[Principal, str, str], Sequence[Mapping[str, Any]] | None]
"""Returns the parameters (their JSON form) of a component's version, None where no agent offers it."""


@dataclass(frozen=True)
class StudyFile:
    """A file that was read: the name that it gives, the spec (JSON), and the line of each of its fields."""

    name: str | None
    spec: Json
    lines: Mapping[str, int] = field(repr=False)

    @contextmanager
    def places(self) -> Iterator[None]:
        """Make InvalidInput errors about the spec name the place in the file."""
        try:
            yield
        except InvalidInput as error:
            before = str(error.data["field"])
            after = self._place(before)
            message = error.message
            if message.startswith(f"{before}:"):
                message = after + message.removeprefix(before)
            raise _fault(error, after, self.lines, message) from None

    def _place(self, at: str) -> str:
        """Return the field of the file for a field of the spec."""
        context = [one["name"] for one in self.spec.get("context", ())]
        if match := re.fullmatch(r"space\[(\d+)\](.*)", at):
            parameters = self.spec["space"]["parameters"]
            index = int(match[1])
            name = parameters[index]["name"] if index < len(parameters) else str(index)
            return f"{'context' if name in context else 'parameters'}.{name}{match[2]}"
        if match := re.fullmatch(r"context\[(\d+)\](?:\.(\w+))?(.*)", at):
            at = f"context.{context[int(match[1])]}"
            keys = {"values": "at", "cheaper": "cheaper"}
            return f"{at}.{keys[match[2]]}{match[3]}" if match[2] in keys else at
        if at in ("space", "execution"):
            return "parameters" if at == "space" else "component"
        if at == "trial_timeout_seconds":
            return "trial_timeout"
        if match := re.fullmatch(r"(objectives\[\d+\])\.(metric|goal)", at):
            return match[1]
        for key in KEYS:
            if at == key.place or at.startswith((f"{key.place}.", f"{key.place}[")):
                return key.path + at[len(key.place) :]
        return at.removeprefix("execution.")


def read(principal: Principal, text: str, *, offered_space: OfferedSpace) -> StudyFile:
    """Return what the text of a study file says.

    Raises InvalidInput (`unreadable_file` for a text that is not YAML), with the field, its value, what is allowed, and
    the line; NotFound (`component_not_found`) where no agent offers the component and the file does not describe all
    parameters itself.
    """
    if len(text.encode(errors="replace")) > LONGEST or "\0" in text:
        raise InvalidInput("file", shorten(text, 100), f"a text of at most {LONGEST} bytes, without NUL characters")
    lines: dict[str, int] = {}
    data = _content(text, lines)
    try:
        return _read(principal, data, lines, offered_space)
    except InvalidInput as error:
        raise _fault(error, str(error.data["field"]), lines, error.message) from None


@contextmanager
def given_spec(
    principal: Principal, spec: object, file: str | None, *, offered_space: OfferedSpace
) -> Iterator[object]:
    """Return the spec that a request gives, either itself or as a study file; errors then name the place in the file.

    Raises InvalidInput for none or both.
    """
    if (spec is None) == (file is None):
        raise InvalidInput("spec", None if spec is None else "given with `file`", "either `spec` or `file`")
    if file is None:
        yield spec
        return
    found = read(principal, file, offered_space=offered_space)
    with found.places():
        yield found.spec


def _read(principal: Principal, data: Json, lines: dict[str, int], offered_space: OfferedSpace) -> StudyFile:
    _known("", data, tuple(dict.fromkeys(key.path.partition(".")[0] for key in KEYS)))
    spec: Json = {}
    for key in KEYS:
        value = _value(data, key)
        if value is not None and key.path not in _OF_SPACE:
            _put(spec, key.place, _READ[key.kind](key.path, value))
    if data.get("live") is not None:
        # A live study may have the defaults of all its keys.
        spec.setdefault("live", {})
    own: Sequence[Mapping[str, Any]] | None = ()
    execution = spec.get("execution", {})
    if "component" in execution:
        own = offered_space(principal, execution["component"], execution.get("digest", ""))
    else:
        # The other settings of the execution mean nothing for a study without a component.
        spec.pop("execution", None)
        if "trial_timeout_seconds" in execution:
            spec["trial_timeout_seconds"] = execution["trial_timeout_seconds"]
    changes = _mapping("parameters", {} if data.get("parameters") is None else data["parameters"])
    context = {
        name: _mapping(f"context.{name}", {} if one is None else one)
        for name, one in _mapping("context", {} if data.get("context") is None else data["context"]).items()
    }
    for variable in context:
        if variable in changes:
            allowed = "a name that `parameters` does not describe too"
            raise InvalidInput(f"context.{variable}", variable, allowed)
    observed = {"at": "values", "cheaper": "cheaper"}
    changes |= {
        name: {key: value for key, value in one.items() if key not in observed} for name, one in context.items()
    }
    if context:
        spec["context"] = [
            {"name": name}
            | {own: _list(f"context.{name}.{key}", one[key]) for key, own in observed.items() if key in one}
            for name, one in context.items()
        ]
    only = None if data.get("only") is None else [*_texts("only", data["only"]), *context]
    fixed = _mapping("fixed", {} if data.get("fixed") is None else data["fixed"])
    _put(spec, "space.parameters", _parameters(changes, own, only, fixed, execution.get("component")))
    if not spec.get("objectives"):
        raise InvalidInput("objectives", [], "at least one, as in [{minimize: seconds}]")
    name = data.get("name")
    return StudyFile(None if name is None else _text("name", name), spec, lines)


def _parameters(
    changes: Json,
    own: Sequence[Mapping[str, Any]] | None,
    only: list[str] | None,
    fixed: Json,
    component: str | None,
) -> list[Json]:
    """Return the parameters: the component's own with the file's changes, or the file's alone."""
    described = {str(one["name"]): dict(one) for one in own or ()}
    listed = None if only is None else set(only)
    for name, given in changes.items():
        change = {key: value for key, value in _mapping(f"parameters.{name}", given).items() if value is not None}
        if "name" in change:
            raise _unknown(
                f"parameters.{name}", "name", ("type", "min", "max", "values", "default", "condition", "unit")
            )
        if own and name not in described:
            field, allowed = f"parameters.{name}", shorten(", ".join(described), 500)
            message = f"{field}: the component has no such parameter. Use {allowed}."
            raise InvalidInput(field, name, allowed, message=message)
        if change.get("type") == "boolean":
            change["type"] = "bool"
        before = described.get(name, {})
        # A parameter that gets another type, such as a list of values in place of a range, keeps nothing else.
        kept = before if change.get("type", before.get("type")) == before.get("type") else {}
        described[name] = {**kept, **change, "name": name}
    found = [one for name, one in described.items() if listed is None or name in listed]
    if own is None and (not found or any("type" not in one for one in found)):
        raise NotFound(
            "component_not_found",
            f"No agent offers component {component!r}, and the file does not describe all of its parameters.",
            component=component,
        )
    for index, name in enumerate(only or ()):
        if name not in described:
            known = shorten(", ".join(described), 500) or "no name: there is no parameter"
            raise InvalidInput(f"only[{index}]", name, known)
    if not found:
        raise InvalidInput("parameters", {}, "at least one, or a component that has some")
    before = {**described, **{str(one["name"]): one for one in own or ()}}
    for name, one in described.items():
        # An agent gives a parameter that it gets no value of the default of its own component file.
        usual = before[name].get("default")
        left_out = listed is not None and name not in listed and name not in fixed
        if left_out and one.get("default") != usual:
            allowed = f"{usual!r}, the default of a parameter that `only` leaves out, or `fixed: {{{name}: VALUE}}`"
            raise InvalidInput(f"parameters.{name}.default", one.get("default"), allowed)
    return choose(fix(described, fixed), before, only, fixed)


def content_of(study: Study, *, brief: bool = True) -> Json:
    """Return the content of the file that describes a study again, with its budget as it is now.

    `brief` leaves out the defaults and writes a policy without options as its name. The other form, for programs, has
    every value at the same place in each file.
    """
    spec = spec_of(study)
    data = {**spec.to_json(), "name": study.name, "budget": budget_of(study).to_json()}
    observed = spec.problem.context.variables
    own = {one.name for one in observed}
    described = _WRITE["parameters"](data["space"]["parameters"])
    data["space"] = {**data["space"], "parameters": {k: one for k, one in described.items() if k not in own}}
    data["context"] = {
        one.name: {
            **described[one.name],
            "at": list(one.values),
            **({"cheaper": list(one.cheaper)} if one.cheaper else {}),
        }
        for one in observed
    } or None
    content: Json = {}
    for key in KEYS:
        value = _get(data, key.place)
        if key.path == "trial_timeout" and spec.execution is None:
            value = spec.trial_timeout_seconds
        if key.path == "only" and spec.execution is not None:
            # The component may have more parameters than the study.
            value = [name for name in spec.space.names() if name not in own]
        if key.path == "final_check" and value is None and spec.execution is not None:
            # A study on agents has a check unless its file says otherwise.
            value = False
        if value is None or (brief and value == key.default):
            continue
        write = _WRITE.get(key.kind)
        if write is not None and key.kind != "parameters" and (brief or key.kind == "objectives"):
            value = write(value)
        _put(content, key.path, value)
    if spec.live is not None:
        content.setdefault("live", {})
    return content


def text_of(study: Study) -> str:
    """Return the text of the file that describes a study again: a line for each key, and for each parameter."""
    lines = []
    for key, value in content_of(study).items():
        if key in ("parameters", "context"):
            lines += [f"{key}:", *(f"  {_line(name, one)}" for name, one in value.items())]
        else:
            lines.append(_line(key, value))
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    """Return the YAML of a key on one line; a text of several lines stands below its key."""
    flow = not isinstance(value, str)
    text: str = yaml.dump(
        {key: value}, Dumper=_Dumper, default_flow_style=flow, sort_keys=False, width=10**9, allow_unicode=True
    )
    return text.strip("\n")[1:-1] if flow else text.rstrip("\n")


# --- the values of the file: each function takes the path and the value


def _kind(kinds: type | tuple[type, ...], allowed: str) -> Callable[[str, object], Any]:
    def read_kind(path: str, value: object) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise InvalidInput(path, value, allowed)
        return value

    return read_kind


_mapping, _list = _kind(dict, "a mapping"), _kind(list, "a list")
_text, _boolean = _kind(str, "a text"), _kind(bool, "true or false")
_integer, _number = _kind(int, "a whole number"), _kind((int, float), "a number")


def _texts(path: str, value: object) -> list[str]:
    return [_text(f"{path}[{index}]", item) for index, item in enumerate(_list(path, value))]


def _time(path: str, value: object) -> float:
    """Return a length of time in seconds."""
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    try:
        seconds = quantities.seconds(text)
    except quantities.QuantityError:
        raise InvalidInput(path, value, "a time such as 90, 90s, 2m or 1.5h") from None
    if not 0 < seconds <= LONGEST_SECONDS:
        # In the unit that the file uses.
        unit = next((one for one in quantities.TIMES if one and text.rstrip().endswith(one)), "")
        allowed = f"more than 0{unit}, at most {LONGEST_SECONDS / quantities.TIMES[unit]:,.0f}{unit}"
        shown = shorten(text, 50)
        raise InvalidInput(path, value, allowed, message=f"{path}: {shown} is not allowed. Use {allowed}.")
    return seconds


def _policy(path: str, value: object) -> Json:
    """Read NAME, or {name: NAME, options: {...}}."""
    given = _mapping(path, {"name": value} if isinstance(value, str) else value)
    _known(path, given, ("name", "options"))
    return {
        "name": _text(f"{path}.name", given.get("name")),
        "options": _mapping(f"{path}.options", given.get("options") or {}),
    }


def _policies(path: str, value: object) -> list[Json]:
    return [_policy(f"{path}[{index}]", item) for index, item in enumerate(_list(path, value))]


def _check(path: str, value: object) -> Json | None:
    """Read true, false, or a mapping with the options of the final check."""
    return ({} if value else None) if isinstance(value, bool) else _mapping(path, value)


def _objectives(path: str, value: object) -> list[Json]:
    return [_objective(f"{path}[{index}]", item) for index, item in enumerate(_list(path, value))]


def _objective(path: str, value: object) -> Json:
    """Read {minimize: METRIC, unit: U} or {maximize: METRIC, unit: U}."""
    given = _mapping(path, value)
    _known(path, given, ("minimize", "maximize", "unit"))
    goals = [goal for goal in ("minimize", "maximize") if goal in given]
    if len(goals) != 1:
        raise InvalidInput(path, given, "{minimize: METRIC} or {maximize: METRIC}")
    [goal] = goals
    unit = _text(f"{path}.unit", given.get("unit", ""))
    return {"metric": _text(f"{path}.{goal}", given[goal]), "goal": goal, **({"unit": unit} if unit else {})}


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "text": _text,
    "texts": _texts,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "time": _time,
    "mapping": _mapping,
    "policy": _policy,
    "policies": _policies,
    "check": _check,
    "objectives": _objectives,
    "approval": _kind((str, dict), "each, restart, none or {first: 10}"),
    "stages": _list,
}


def _short(policy: Mapping[str, Any]) -> Any:
    """Return a policy as its name where it has no options."""
    options = {name: value for name, value in policy["options"].items() if value is not None}
    return {"name": policy["name"], "options": options} if options else policy["name"]


def _described(parameter: Mapping[str, Any]) -> Json:
    kind = "boolean" if parameter["type"] == "bool" else parameter["type"]
    return {"type": kind, **{key: value for key, value in parameter.items() if key not in ("name", "type")}}


_WRITE: Mapping[str, Callable[[Any], Any]] = {
    "policy": _short,
    "policies": lambda policies: [_short(policy) for policy in policies],
    "objectives": lambda objectives: [
        {one["goal"]: one["metric"], **({"unit": one["unit"]} if one.get("unit") else {})} for one in objectives
    ],
    "approval": lambda rule: rule["trials"] if set(rule) == {"trials"} else rule,
    "parameters": lambda parameters: {one["name"]: _described(one) for one in parameters},
}


# --- paths


def _value(data: Json, key: FileKey) -> Any:
    """Return the value of a key, None where it is missing. Raises InvalidInput for an unknown key on the way."""
    outer, _, inner = key.path.partition(".")
    if not inner or data.get(outer) is None:
        return data.get(outer) if not inner else None
    within = _mapping(outer, data[outer])
    _known(outer, within, [one.path.partition(".")[2] for one in KEYS if one.path.startswith(f"{outer}.")])
    return within.get(inner)


def _get(data: Mapping[str, Any], path: str) -> Any:
    value: Any = data
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _put(data: Json, path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for part in outer:
        data = data.setdefault(part, {})
    data[last] = value


def _known(path: str, given: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in given:
        if key not in keys:
            raise _unknown(path, key, keys)


def _unknown(path: str, key: str, keys: Sequence[str]) -> InvalidInput:
    field, allowed = f"{path}.{key}" if path else key, ", ".join(keys)
    near = next(iter(difflib.get_close_matches(key, keys, n=1)), None)
    hint = "" if near is None else f" Did you mean {near!r}?"
    return InvalidInput(field, key, allowed, message=f"{field}: the key is not known.{hint} Use {allowed}.")


def _fault(error: InvalidInput, place: str, lines: Mapping[str, int], message: str) -> InvalidInput:
    """Return the error with this field, the line of the field in the file, and this message."""
    error.data["field"] = place
    at = place
    while at and at not in lines:
        at = re.sub(r"(\.[^.\[]*|\[\d+\]|^[^.\[]*)$", "", at)
    if at:
        error.data["line"] = lines[at]
    error.message, error.args = message, (message,)
    return error


# --- YAML


def _content(text: str, lines: dict[str, int]) -> Json:
    """Return the file's outermost mapping as plain values; `lines` gets the line of each place."""
    reader = Reader("file")
    top = reader.parse(text)
    if top is None:
        problem = reader.problems[0]
        if problem.field == "file" and not text.strip():
            raise InvalidInput("file", "", "a mapping", message="The file is empty. It needs at least objectives.")
        message = f"The file cannot be read: line {problem.line}, column {problem.column}: {problem.message}."
        code = "invalid_argument" if problem.field == "file" else "unreadable_file"
        raise InvalidInput("file", shorten(text.strip(), 60), "YAML", message=message, code=code, line=problem.line)
    return dict(_plain(top.node, "", lines))


def _plain(node: yaml.Node, path: str, lines: dict[str, int]) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, f"{path}[{index}]", lines) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    found: Json = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            message = f"{path or 'The file'}: a key is not a text. Write each key as a word."
            raise InvalidInput(path or "file", "", "texts as keys", message=message, line=key.start_mark.line + 1)
        inner = f"{path}.{key.value}" if path else key.value
        if len(inner) > LONGEST_PLACE:
            message = f"{shorten(inner, 100)}: the keys are too long. Use at most {LONGEST_PLACE} characters in all."
            raise InvalidInput(path or "file", shorten(key.value, 100), "shorter keys", message=message)
        if key.value in found:
            message = f"{inner}: the key appears twice. Remove one of them."
            raise InvalidInput(inner, key.value, "each key once", message=message, line=key.start_mark.line + 1)
        found[key.value] = _plain(value, inner, lines)
    return found


def _scalar(node: yaml.ScalarNode) -> JsonValue:
    """Return a plain value by the rules of YAML 1.2: 1e-3 is a number, and on, off, yes and no are texts."""
    text: str = node.value
    if node.style not in (None, ""):
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false") and text in (text.lower(), text.title(), text.upper()):
        return text.lower() == "true"
    if re.fullmatch(r"[-+]?[0-9]+", text) and len(text) <= LONGEST_INTEGER:
        return int(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        return float(text)
    return text


class _Dumper(yaml.SafeDumper):
    """YAML that `_scalar` and other YAML 1.2 readers read back as it was: no aliases, and quotes where needed."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True: write every value where it is used."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = _scalar(yaml.ScalarNode("tag:yaml.org,2002:str", text))
    style = "|" if "\n" in text else None if isinstance(plain, str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_float(dumper: yaml.SafeDumper, number: float) -> yaml.Node:
    return dumper.represent_int(int(number)) if number.is_integer() and abs(number) < 2**53 else _float(dumper, number)


_float = yaml.SafeDumper.represent_float
_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)
