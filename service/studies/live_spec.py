"""The key `live` of a spec: how a system that serves is tuned, and what it may cost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from service.core.errors import InvalidInput
from service.core.windows import Window
from service.studies.spec_keys import Kind, as_object, is_empty, key, write
from trimtab_components import quantities

Kept = TypeVar("Kept")

DESIGNS = ("auto", "switchback", "crossover", "canary")
APPROVALS = ("first", "each", "restart", "none")
LIMITS = ("above", "below", "above_control")
# Seconds of each period of a budget.
PERIODS: Mapping[str, float] = {"hour": 3600.0, "day": 24 * 3600.0, "week": 7 * 24 * 3600.0}
ALL = "all"
LONGEST_BLOCK, LONGEST_WATCH = 24 * 3600.0, 366 * 24 * 3600.0
MOST_PAIRS = 1000
# What a study of jobs counts: the run time of a job on all its nodes, and how much of it candidates have lost.
NODE_HOURS, LOST_NODE_HOURS = "node_hours", "lost_node_hours"
_MOST_NAMED = 20
_LONGEST_ID = 18
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True, slots=True)
class Pairs:
    """How many pairs of blocks a trial has, at least and at most."""

    least: int = 6
    most: int = 24


@dataclass(frozen=True, slots=True)
class Approve:
    """The trials that people approve: the `first` ones, each, those that restart the system (restart), or none.

    `people`: how many people must approve.
    """

    trials: str = "first"
    first: int = 10
    people: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the JSON from which the same rule is read."""
        which = {"first": self.first} if self.trials == "first" else {"trials": self.trials}
        return {**which, **({"people": self.people} if self.people > 1 else {})}


@dataclass(frozen=True, slots=True)
class Losses:
    """A limit of what tuning costs: the share `most` of `of` that may be lost in each period, as `metric` counts it.

    `rate` is how many of `of` there are in a second; None: as the trials so far have read.
    """

    metric: str
    of: str
    most: float
    per: str = "day"
    rate: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON from which the same limit is read."""
        found = {"metric": self.metric, "of": self.of, "most": self.most, "per": self.per}
        return found if self.rate is None else {**found, "rate": self.rate}


@dataclass(frozen=True, slots=True)
class Guard:
    """A limit of a metric, which is broken after `seconds` beyond it. `kind` is one of LIMITS."""

    metric: str
    kind: str
    limit: float
    seconds: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON from which the same guard is read."""
        return {"metric": self.metric, self.kind: self.limit, "for": self.seconds}


def _time(most: float, least: float = 0.0) -> Kind:
    """Return the kind of a time in seconds, which JSON may also write as `5s`, `2m` or `24h`."""

    def read(field: str, value: object) -> float:
        text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
        try:
            seconds = quantities.seconds(text)
        except quantities.QuantityError:
            seconds = math.nan
        if not least <= seconds <= most:
            raise InvalidInput(
                field, value, f"a time from {least:g} s to {_in_words(most)}, such as 90, 90s, 2m or 24h"
            )
        return seconds

    return Kind("time", read)


def _in_words(seconds: float) -> str:
    return f"{seconds / 86400:g} days" if seconds > 86400 else f"{seconds / 3600:g} hours"


def _number(least: float, most: float, allowed: str) -> Kind:
    return Kind("number", lambda field, value: _checked(field, value, least, most, allowed))


def _checked(field: str, value: object, least: float, most: float, allowed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidInput(field, value, allowed)
    return float(value)


def _whole(field: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, value, f"a whole number from {least} to {most:,}")
    return value


def _choice(field: str, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidInput(field, value, ", ".join(choices))
    return str(value)


def _metric(field: str, value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput(field, value, "the name of a metric of the component")
    return value


_PAIRS, _APPROVE = Pairs(), Approve()


def _pairs(field: str, data: object) -> Pairs:
    given = as_object(field, data, ("least", "most"))
    least = _whole(f"{field}.least", given.get("least", _PAIRS.least), 2, MOST_PAIRS)
    most = _whole(f"{field}.most", given.get("most", max(_PAIRS.most, least)), 2, MOST_PAIRS)
    if most < least:
        raise InvalidInput(f"{field}.most", most, f"at least {least}, which is {field}.least")
    return Pairs(least, most)


def _approve(field: str, data: object) -> Approve:
    if isinstance(data, str):
        return Approve(_choice(field, data, APPROVALS))
    if not isinstance(data, Mapping):
        raise InvalidInput(field, data, "each, restart, none or {first: 10}")
    given = as_object(field, data, ("trials", "first", "people"))
    trials = _choice(f"{field}.trials", given.get("trials", "first"), APPROVALS)
    if "first" in given and trials != "first":
        raise InvalidInput(f"{field}.first", given["first"], f"no number together with trials: {trials}")
    first = _whole(f"{field}.first", given.get("first", _APPROVE.first), 1, 10**6)
    return Approve(trials, first, _whole(f"{field}.people", given.get("people", 1), 1, 2))


def _window(field: str, data: object) -> Window:
    given = as_object(field, data, ("days", "hours", "zone"))
    return Window.parse(
        field, given.get("days", "mon-sun"), given.get("hours", "00:00-24:00"), given.get("zone", "UTC")
    )


def _named(read: Callable[[str, Any], Kept]) -> Callable[[str, object], dict[str, Kept]]:
    """Return the reader of an object with a value of one kind for each name."""

    def read_all(field: str, data: object) -> dict[str, Kept]:
        if not isinstance(data, Mapping) or len(data) > _MOST_NAMED:
            raise InvalidInput(field, data, f"an object with at most {_MOST_NAMED} names")
        for name in data:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InvalidInput(field, name, "names of a letter, then at most 62 letters, digits and . _ -")
        return {str(name): read(f"{field}.{name}", value) for name, value in data.items()}

    return read_all


def _losses(field: str, data: object) -> Losses:
    given = as_object(field, data, ("metric", "of", "most", "per", "rate"))
    rate = given.get("rate")
    return Losses(
        metric=_metric(f"{field}.metric", given.get("metric")),
        of=_metric(f"{field}.of", given.get("of")),
        most=_checked(f"{field}.most", given.get("most"), 1e-9, 1.0, "a share above 0, at most 1, such as 0.01"),
        per=_choice(f"{field}.per", given.get("per", "day"), tuple(PERIODS)),
        rate=None if rate is None else _checked(f"{field}.rate", rate, 1e-9, 1e12, "a number per second above 0"),
    )


def _guard(field: str, data: object) -> Guard:
    given = as_object(field, data, ("metric", *LIMITS, "for"))
    kinds = [kind for kind in LIMITS if kind in given]
    if len(kinds) != 1:
        raise InvalidInput(field, dict(given), f"one of {', '.join(LIMITS)}")
    [kind] = kinds
    limit = _checked(f"{field}.{kind}", given[kind], -1e300, 1e300, "a number")
    if kind == "above_control" and limit <= 1:
        raise InvalidInput(f"{field}.{kind}", limit, "a factor above 1, such as 1.5")
    seconds = _time(600.0).read(f"{field}.for", given.get("for", 1.0))
    return Guard(_metric(f"{field}.metric", given.get("metric")), kind, limit, seconds)


def _rollout(field: str, data: object) -> tuple[int | str, ...]:
    allowed = "a list of numbers of instances that increase, such as [1, 3, all]"
    if not isinstance(data, Sequence) or isinstance(data, str) or not 1 <= len(data) <= _MOST_NAMED:
        raise InvalidInput(field, data, allowed)
    stages: list[int | str] = []
    for index, one in enumerate(data):
        is_last = index == len(data) - 1
        if one == ALL and is_last:
            stages.append(ALL)
            continue
        least = stages[-1] + 1 if stages and isinstance(stages[-1], int) else 1
        if isinstance(one, bool) or not isinstance(one, int) or not least <= one <= 10_000:
            raise InvalidInput(f"{field}[{index}]", one, allowed)
        stages.append(one)
    return tuple(stages)


def _record(field: str, value: object) -> str:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not text.isascii() or not text.isdecimal() or len(text) > _LONGEST_ID:
        raise InvalidInput(field, value, "the id of a record, such as 12")
    return text


_WINDOW = Kind("mapping", _window, Window.to_json, is_empty)


def _all_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.to_json() for name, one in values.items()}


@dataclass(frozen=True, slots=True)
class Live:
    """How a system that serves is tuned: pairs of blocks of the candidate and of the settings in force.

    With a `record`, the pairs are jobs that match it.
    """

    record: str | None = key(
        Kind("text", _record),
        "Record whose jobs are the trials. Without it, agents switch the settings of a system.",
        nullable=True,
        file_form="12",
    )
    warm_up: float | None = key(
        _time(LONGEST_BLOCK),
        "Time after a switch that is not measured.",
        note="In seconds, or such as 5s. Null: the component's.",
        nullable=True,
        file_form="5s",
    )
    block: float | None = key(
        _time(LONGEST_BLOCK, 0.1),
        "Time of a block that is measured.",
        note="In seconds, or such as 60s. Null: the component's.",
        nullable=True,
        file_form="60s",
    )
    pairs: Pairs = key(
        Kind("mapping", _pairs, lambda one: {"least": one.least, "most": one.most}, is_empty),
        "Number of pairs of blocks in a trial.",
        default=Pairs(),
        file_form="{least: 6, most: 24}",
        file_default={"least": 6, "most": 24},
    )
    design: str = key(
        Kind("text", lambda field, value: _choice(field, value, DESIGNS), choices=DESIGNS),
        "How instances are compared.",
        default="auto",
        file_form="auto, switchback, crossover or canary",
        file_default="auto",
    )
    step: float = key(
        _number(0.001, 1.0, "a share of a range from 0.001 to 1, such as 0.15"),
        "Most that a parameter moves from the settings in force, as a share of its range.",
        default=0.15,
        file_default=0.15,
    )
    min_gain: float = key(
        _number(0.0, 0.9, "a share from 0 to 0.9, such as 0.03"),
        "Smallest gain for which settings are kept, as a share.",
        default=0.03,
        file_default=0.03,
    )
    approve: Approve = key(
        Kind("approval", _approve, Approve.to_json, is_empty),
        "Trials that a person approves before they begin.",
        default=Approve(),
        file_form="{first: 10}, each, restart or none; {first: 10, people: 2} asks two people",
        file_default={"first": 10},
    )
    window: Window | None = key(
        _WINDOW,
        "Times at which trials run.",
        nullable=True,
        file_form='{days: mon-fri, hours: "09:00-17:00", zone: Europe/Paris}',
    )
    restart_window: Window | None = key(
        _WINDOW,
        "Times at which trials run that restart the system.",
        nullable=True,
        file_form='{days: sun, hours: "02:00-05:00", zone: Europe/Paris}',
    )
    budget: Mapping[str, Losses] = key(
        Kind("mapping", _named(_losses), _all_json, is_empty),
        "Most that tuning may lose in a period.",
        default=dict,
        file_form="{slow: {metric: slow, of: requests, most: 0.01, per: day}}",
        file_default={},
    )
    rollout: tuple[int | str, ...] = key(
        Kind("stages", _rollout, list, is_empty),
        "Numbers of instances that get settings one stage after the other.",
        default=(1, 3, ALL),
        file_form="[1, 3, all]",
        file_default=[1, 3, ALL],
    )
    watch: float = key(
        _time(LONGEST_WATCH),
        "Time for which kept settings are watched.",
        note="In seconds, or such as 24h.",
        default=86400.0,
        file_form="24h",
        file_default=86400.0,
    )
    freeze: float = key(
        _number(0.0, 1.0, "a share from 0 to 1, such as 0.02"),
        "Share of trials with a broken guard above which the study pauses.",
        default=0.02,
        file_default=0.02,
    )
    guards: Mapping[str, Guard] = key(
        Kind("mapping", _named(_guard), _all_json, is_empty),
        "Limits in addition to those of the component.",
        default=dict,
        file_form="{latency: {metric: p95_ms, above_control: 1.3, for: 5s}}",
        file_default={},
    )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON from which the same rules are read."""
        return write(self)
