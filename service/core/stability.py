"""The settings of a study that looks for configurations which stay good: on which nodes, when, and by which value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from service.core.errors import InvalidInput, JsonValue

USUAL_NODES = (1, 3, 10)
USUAL_SPREAD = 0.30
# A quantile over fewer nodes would be their worst value.
LEAST_FOR_QUANTILE = 5
_MOST_STAGES, _MOST_NODES = 5, 1000
_LONGEST_TIMES = 31 * 24 * 3600.0
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_KEYS = ("nodes", "times", "value", "unstable", "adjust")

Adjust = Literal["auto", "none"]


@dataclass(frozen=True, slots=True)
class Stability:
    """The settings of `stability:`. All of them have defaults.

    `nodes`: a configuration is measured on so many nodes in each stage; few configurations reach the last stage.
    `times`: the last stage begins so many seconds after the first measurement of a configuration. `mean_plus`: the
    value of a configuration is its mean plus so many standard deviations; None: `quantile` of its nodes counts.
    `unstable`: a configuration whose values on nodes differ by this share of their mean is unstable. `adjust`: whether
    values are corrected by what the machines did meanwhile, where that helps.
    """

    nodes: tuple[int, ...] = USUAL_NODES
    times: float | None = None
    mean_plus: float | None = 1.0
    quantile: float | None = None
    unstable: float = USUAL_SPREAD
    adjust: Adjust = "auto"

    @classmethod
    def parse(cls, field: str, data: object) -> Stability:
        """Return the settings that the JSON describes. Raises InvalidInput with the path of the field at fault."""
        if not isinstance(data, Mapping):
            raise InvalidInput(field, data, f"an object with {', '.join(_KEYS)}")
        for name in data:
            if name not in _KEYS:
                raise InvalidInput(f"{field}.{name}", data[name], f"the keys {', '.join(_KEYS)}")
        given = {name: value for name, value in data.items() if value is not None}
        nodes = _nodes(f"{field}.nodes", given.get("nodes", USUAL_NODES))
        mean_plus, quantile = _value(f"{field}.value", given.get("value", {"mean_plus": 1.0}))
        if quantile is not None and nodes[-1] < LEAST_FOR_QUANTILE:
            allowed = f"mean_plus, or nodes that end with {LEAST_FOR_QUANTILE} or more"
            raise InvalidInput(
                f"{field}.value.quantile", quantile, allowed, problem=f"needs more than {nodes[-1]} nodes"
            )
        times = given.get("times")
        adjust = given.get("adjust", "auto")
        if adjust not in get_args(Adjust):
            raise InvalidInput(f"{field}.adjust", adjust, " or ".join(get_args(Adjust)))
        return cls(
            nodes,
            None if times is None else _time(f"{field}.times", times),
            mean_plus,
            quantile,
            _number(f"{field}.unstable", given.get("unstable", USUAL_SPREAD), 0.01, 10.0),
            adjust,
        )

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `parse` makes equal settings."""
        value = {"quantile": self.quantile} if self.mean_plus is None else {"mean_plus": self.mean_plus}
        return {
            "nodes": [*self.nodes],
            "times": self.times,
            "value": {**value},
            "unstable": self.unstable,
            "adjust": self.adjust,
        }

    @property
    def most_nodes(self) -> int:
        """The number of nodes of the last stage."""
        return self.nodes[-1]


def _nodes(field: str, data: object) -> tuple[int, ...]:
    allowed = f"a list of 1 to {_MOST_STAGES} integers in ascending order, each from 1 to {_MOST_NODES}"
    if not isinstance(data, list | tuple) or not 1 <= len(data) <= _MOST_STAGES:
        raise InvalidInput(field, data, allowed)
    for index, one in enumerate(data):
        least = 1 if index == 0 else data[index - 1] + 1
        # A message of protobuf holds each number as a double.
        whole = isinstance(one, int | float) and not isinstance(one, bool) and one == math.floor(one)
        if not whole or not least <= one <= _MOST_NODES:
            raise InvalidInput(f"{field}[{index}]", one, f"an integer from {least} to {_MOST_NODES}")
    return tuple(map(int, data))


def _value(field: str, data: object) -> tuple[float | None, float | None]:
    allowed = "either {mean_plus: 1.0} or {quantile: 0.9}"
    if not isinstance(data, Mapping):
        raise InvalidInput(field, data, allowed)
    for name in data:
        if name not in ("mean_plus", "quantile"):
            raise InvalidInput(f"{field}.{name}", data[name], allowed)
    given: dict[str, Any] = {name: value for name, value in data.items() if value is not None}
    if len(given) != 1:
        raise InvalidInput(field, dict(data), allowed)
    if "mean_plus" in given:
        return _number(f"{field}.mean_plus", given["mean_plus"], 0.0, 10.0), None
    return None, _number(f"{field}.quantile", given["quantile"], 0.5, 0.99)


def _time(field: str, data: object) -> float:
    """Return seconds, which may be given as a text such as 24h."""
    match = re.fullmatch(r"\s*(\d{1,10}(?:\.\d{1,6})?) *([a-z]*)\s*", data) if isinstance(data, str) else None
    if isinstance(data, str):
        given: object = float(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None
    else:
        given = data
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 1.0 <= float(str(given)) <= _LONGEST_TIMES:
        raise InvalidInput(field, data, "a time from 1s to 31d, such as 24h or a number of seconds")
    return float(str(given))


def _number(field: str, data: object, least: float, most: float) -> float:
    is_number = isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
    if not is_number or not least <= float(str(data)) <= most:
        raise InvalidInput(field, data, f"a number from {least:g} to {most:g}")
    return float(str(data))
