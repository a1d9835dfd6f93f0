"""What a job asks of Ray. The administrator's policy is about this."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# The options of `ray job submit` that a component, a parameter or the administrator may give, and their fields in a
# submission.
FIELDS = {
    "num-cpus": "entrypoint_num_cpus",
    "num-gpus": "entrypoint_num_gpus",
    "memory": "entrypoint_memory",
    "resources": "entrypoint_resources",
    "label-selector": "entrypoint_label_selector",
}
# Those that are numbers, and the resource of a node that each is about.
NUMBERS = {"num-cpus": "CPU", "num-gpus": "GPU", "memory": "memory"}
OPTION = re.compile(r"--([a-z-]+)=(.+)", re.DOTALL)
ALLOWED = "--num-cpus=N, --num-gpus=N, --memory=BYTES, --resources={JSON} or --label-selector={JSON}"


class UnreadableOptionError(ValueError):
    """An option that is none, or has a value that it cannot have. `str()` says which, and what is allowed."""


def asked(options: Sequence[str]) -> dict[str, Any]:
    """What options ask for, by option; of one that is given twice the last holds.

    Raises:
        UnreadableOptionError: one is none.
    """
    found: dict[str, Any] = {}
    for option in options:
        match = OPTION.fullmatch(option)
        if match is None or match[1] not in FIELDS:
            raise UnreadableOptionError(f"scheduler option {option!r} is none of Ray's; allowed: {ALLOWED}")
        name, text = match.groups()
        found[name] = _number(name, text) if name in NUMBERS else _table(name, text)
    return found


def fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """As the dashboard takes them."""
    return {FIELDS[name]: value for name, value in asked.items()}


def resources(asked: Mapping[str, Any]) -> dict[str, float]:
    """What a node must have, by resource."""
    numbers = {resource: float(asked[name]) for name, resource in NUMBERS.items() if asked.get(name)}
    return {**asked.get("resources", {}), **numbers}


def _number(name: str, text: str) -> float | int:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e18 or (name == "memory" and not number.is_integer()):
        allowed = "a whole number of bytes" if name == "memory" else "a number from 0 on"
        raise UnreadableOptionError(f"--{name}={text!r}; allowed: {allowed}")
    return int(number) if number.is_integer() else number


def _table(name: str, text: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except ValueError:
        table = None
    is_selector = name == "label-selector"
    if isinstance(table, dict) and all(_is_text(item) if is_selector else _is_amount(item) for item in table.values()):
        return table
    allowed = "text" if is_selector else "number from 0 on"
    raise UnreadableOptionError(f"--{name}={text!r}; allowed: a JSON object whose values are each a {allowed}")


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def _is_amount(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item < 1e18
