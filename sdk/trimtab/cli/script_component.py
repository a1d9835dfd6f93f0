"""Describe a batch script as a component file, from the options of the command line."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trimtab.cli.configuration import declare
from trimtab.errors import InvalidInput, JsonValue
from trimtab.space import Parameter

Keys = dict[str, JsonValue]
Value = TypeVar("Value")

APPLICATION = "script"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How a value reaches the script. A component file has these keys, and a search space has not.
DELIVERY = ("env", "flag", "scheduler", "directive", "omit_default", "group", "description")
RANGE = (
    "NAME=MIN..MAX, NAME=A,B,C or NAME={JSON}, with an optional :DEFAULT, for example threads=1..16:4, tile=16,32,64"
)
PASS = "NAME=env:VARIABLE, NAME=option:--OPTION={value} or NAME=argument:{value}"
PLAIN = ("wall_time", "cpu_time", "peak_memory", "bytes_written")
METRIC = ", ".join(
    [*(f"NAME={one}" for one in PLAIN), "NAME=regex:PATTERN, NAME=json:PATH, NAME=TOOL:FIELD or NAME={JSON}"]
)


@dataclass(frozen=True)
class ScriptComponent:
    """A component file for one batch script, and the search space that it gives to a study."""

    name: str
    content: Mapping[str, JsonValue]
    space: tuple[Parameter, ...]
    metrics: tuple[str, ...]

    def text(self) -> str:
        """Return the file as YAML, with a line for each parameter, application and metric."""
        lines: list[str] = []
        for key, value in self.content.items():
            if not isinstance(value, dict):
                lines.append(f"{key}: {_flow(value)}")
                continue
            lines.append(f"{key}:")
            lines += [f"  {_flow(name)}: {_flow(inner)}" for name, inner in value.items()]
        return "\n".join(lines) + "\n"


# A text that YAML reads as itself, also in a list or mapping on one line.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _flow(value: JsonValue) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def describe(
    name: str,
    script: Path,
    *,
    parameters: Sequence[str],
    passed: Sequence[str],
    metrics: Sequence[str],
    timeout: float,
    folder: Path | None,
) -> ScriptComponent:
    """Return the component of a script.

    Args:
        name: the component's name.
        script: the script; a relative path is relative to the component file.
        parameters: the options `--param`.
        passed: the options `--pass`. A parameter without one reaches the script as an environment variable.
        metrics: the options `--metric`; none: the running time as `seconds`.
        timeout: seconds that a job may run.
        folder: the folder where the script runs; None: an empty folder for each job.

    Raises:
        InvalidInput: an option is malformed. The agent checks the rest of the file.
    """
    table = _named("--param", parameters, RANGE, _parameter)
    if not table:
        raise InvalidInput.of("--param", None, RANGE)
    for item in passed:
        _deliver(table, item)
    for key, keys in table.items():
        if not any(one in keys for one in ("env", "flag", "scheduler", "directive")):
            if not VARIABLE.fullmatch(key):
                raise InvalidInput.of("--pass", None, f"{PASS} for {key}, which is no name of an environment variable")
            keys["env"] = key
    read: dict[str, JsonValue] = {}
    read.update(_named("--metric", metrics, METRIC, _metric) or {"seconds": "wall_time"})
    for key, how in read.items():
        if folder is not None and isinstance(how, dict) and how.get("from", "stdout") not in ("stdout", "stderr"):
            raise InvalidInput.of(
                f"--metric {key}",
                how["from"],
                "stdout or stderr, or add --own-folder to read a file that the job wrote",
            )
    run: Keys = {"script": str(script), "timeout": timeout}
    if folder is not None:
        run["cwd"] = str(folder).replace("{", "{{").replace("}", "}}")
    content: Keys = {
        "name": name,
        "parameters": {key: dict(keys) for key, keys in table.items()},
        "applications": {APPLICATION: run},
        "metrics": read,
    }
    space = [
        declare("--param", key, {one: value for one, value in keys.items() if one not in DELIVERY}, RANGE)
        for key, keys in table.items()
    ]
    return ScriptComponent(name, content, tuple(space), tuple(read))


def _named(option: str, items: Sequence[str], allowed: str, read: Callable[[str, str], Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator or not name or not text:
            raise InvalidInput.of(option, item, allowed)
        if name in found:
            raise InvalidInput.of(option, item, f"each name once; {name} is given twice")
        found[name] = read(item, text)
    return found


def _parameter(item: str, text: str) -> Keys:
    if text.startswith("{"):
        return _json("--param", item, text, RANGE)
    values, _, default = text.partition(":")
    least, separator, most = values.partition("..")
    if separator:
        low, high = _number(least), _number(most)
        if low is None or high is None:
            raise InvalidInput.of("--param", item, RANGE)
        start = low if not default else _number(default)
        if start is None:
            raise InvalidInput.of("--param", item, "a number as the default")
        whole = all(isinstance(one, int) for one in (low, high, start))
        return {"type": "int" if whole else "float", "min": low, "max": high, "default": start}
    choices = values.split(",")
    if sorted(choices) == ["false", "true"]:
        if default not in ("", "true", "false"):
            raise InvalidInput.of("--param", item, "true or false as the default")
        return {"type": "boolean", "default": (default or choices[0]) == "true"}
    numbers = [_number(one) for one in choices]
    if len(choices) < 2 or (default and default not in choices):
        raise InvalidInput.of("--param", item, "at least two values, and one of them as the default")
    chosen = choices.index(default) if default else 0
    if None not in numbers:
        return {"type": "ordinal", "values": list(numbers), "default": numbers[chosen]}
    return {"type": "categorical", "values": list(choices), "default": choices[chosen]}


def _deliver(table: Mapping[str, Keys], item: str) -> None:
    name, _, how = item.partition("=")
    kind, _, form = how.partition(":")
    if name not in table:
        raise InvalidInput.of("--pass", item, f"one of the parameters {', '.join(table)}")
    keys = {"env": "env", "option": "scheduler", "argument": "flag"}
    if kind not in keys or (kind == "env" and not VARIABLE.fullmatch(form)):
        raise InvalidInput.of("--pass", item, PASS)
    if kind == "option" and (not form.startswith("--") or "{value}" not in form):
        raise InvalidInput.of(
            "--pass", item, f"{name}=option:--OPTION={{value}}, such as option:--cpus-per-task={{value}}"
        )
    if keys[kind] in table[name]:
        raise InvalidInput.of("--pass", item, f"each way once for {name}")
    table[name][keys[kind]] = form or "{value}"


def _metric(item: str, text: str) -> JsonValue:
    if text in PLAIN:
        return text
    if text.startswith("{"):
        return _json("--metric", item, text, METRIC)
    kind, separator, rest = text.partition(":")
    if not separator or not rest:
        raise InvalidInput.of("--metric", item, METRIC)
    if kind in ("regex", "json"):
        return {"type": kind, "pattern" if kind == "regex" else "path": rest}
    return {kind: rest}


def _json(option: str, item: str, text: str, allowed: str) -> Keys:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput.of(option, item, allowed)
    return found


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
