"""The options of a Ray job, which the administrator's policy limits."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# The options of `ray job submit` that a component, a parameter or the administrator may give, with their fields in a
# submission.
FIELDS = {
    "num-cpus": "entrypoint_num_cpus",
    "num-gpus": "entrypoint_num_gpus",
    "memory": "entrypoint_memory",
    "resources": "entrypoint_resources",
    "label-selector": "entrypoint_label_selector",
}
# The options that are numbers, with the resource that each requests.
NUMBERS = {"num-cpus": "CPU", "num-gpus": "GPU", "memory": "memory"}
OPTION = re.compile(r"--([a-z-]+)=(.+)", re.DOTALL)
ALLOWED = "--num-cpus=N, --num-gpus=N, --memory=BYTES, --resources={JSON} or --label-selector={JSON}"


class UnreadableOptionError(ValueError):
    """An option is unknown or has a wrong value. `str(error)` names it and what is allowed."""


def asked(options: Sequence[str]) -> dict[str, Any]:
    """Return the values of options by name. The last of repeated options counts.

    Raises:
        UnreadableOptionError: an option is unknown or has a wrong value.
    """
    found: dict[str, Any] = {}
    for option in options:
        match = OPTION.fullmatch(option)
        if match is None or match[1] not in FIELDS:
            raise UnreadableOptionError(f"scheduler option {option!r} is not an option of Ray. Use {ALLOWED}.")
        name, text = match.groups()
        found[name] = _number(name, text) if name in NUMBERS else _table(name, text)
    return found


def fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as fields of a submission."""
    return {FIELDS[name]: value for name, value in asked.items()}


def resources(asked: Mapping[str, Any]) -> dict[str, float]:
    """Return the amounts that a node must have, by resource."""
    numbers = {resource: float(asked[name]) for name, resource in NUMBERS.items() if asked.get(name)}
    return {**asked.get("resources", {}), **numbers}


def _number(name: str, text: str) -> float | int:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e18 or (name == "memory" and not number.is_integer()):
        allowed = "a whole number of bytes" if name == "memory" else "a number of at least 0"
        raise UnreadableOptionError(f"--{name}: {text!r} is not allowed. Use {allowed}.")
    return int(number) if number.is_integer() else number


def _table(name: str, text: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except ValueError:
        table = None
    is_selector = name == "label-selector"
    if isinstance(table, dict) and all(_is_text(item) if is_selector else _is_amount(item) for item in table.values()):
        return table
    allowed = f"a JSON object whose values are each a {'text' if is_selector else 'number of at least 0'}"
    raise UnreadableOptionError(f"--{name}: {text!r} is not allowed. Use {allowed}.")


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def _is_amount(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item < 1e18
