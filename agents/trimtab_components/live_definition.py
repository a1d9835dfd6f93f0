"""Read the key `live` of a component file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

from trimtab_components.live import MEMORY_USED, Command, Guard, Live, Reading
from trimtab_components.placeholders import names_in_argument
from trimtab_components.reader import Table

# What finds a file that the component refers to by a key.
Find: TypeAlias = Callable[[Table, str, str], Path]

KEYS = (
    *("instances", "apply", "revert", "verify", "fallback", "keep", "restart", "forbidden", "metrics", "guards"),
    *("warm_up", "block", "away", "calibrate"),
)
COMMAND_KEYS = ("command", "timeout")
READING_KEYS = {
    "command": ("type", "command", "path", "every", "kind"),
    "file": ("type", "file", "path", "every", "kind"),
    "prometheus": ("type", "query", "url", "every", "kind"),
}
READING_KINDS = ("gauge", "counter")
LIMITS = ("above", "below", "above_control", "below_control")
GUARD_KEYS = ("metric", *LIMITS, "for")
# The placeholders in commands and queries of a live component.
INSTANCE = "instance"
PLACES = (INSTANCE, "component")
# Seconds: the service would take a trial for lost after longer ones.
LONGEST_BLOCK = 24 * 3600.0
LONGEST_COMMAND = 600.0
SLOWEST_READING = 60.0
MOST_READINGS = 50


def read(table: Table, find: Find, is_parameter: Callable[[str], bool]) -> Live:
    """Return the content of the key `live`. It is valid only if the reader has found no errors."""
    table.allow(KEYS)
    table.require("instances", "apply", "revert", "verify", "metrics", "guards")
    readings = {name: _reading(find, name, one) for name, one in table.tables("metrics")}
    if len(readings) > MOST_READINGS:
        table.fault("metrics", f"has {len(readings)} metrics; at most {MOST_READINGS} are allowed")
    guards = {name: _guard(name, one, readings) for name, one in table.tables("guards")}
    if "guards" in table and not guards:
        table.fault("guards", "must name at least one guard: without one nothing ends a bad trial")
    for key in ("restart", "forbidden"):
        for name in table.texts(key):
            if not is_parameter(name):
                table.fault(key, f"{name!r} is not a parameter of this component")
    return Live(
        apply=_command(find, table, "apply"),
        revert=_command(find, table, "revert"),
        verify=_command(find, table, "verify"),
        fallback=_command(find, table, "fallback") if "fallback" in table else None,
        keep=_command(find, table, "keep") if "keep" in table else None,
        restart=table.texts("restart"),
        forbidden=table.texts("forbidden"),
        readings=readings,
        guards=guards,
        warm_up=_seconds(table, "warm_up", Live.warm_up, LONGEST_BLOCK, least=0),
        block=_seconds(table, "block", Live.block, LONGEST_BLOCK, least=0.1),
        away=_seconds(table, "away", Live.away, LONGEST_BLOCK, least=1),
        calibrate=_seconds(table, "calibrate", Live.calibrate, LONGEST_BLOCK, least=0),
    )


def _command(find: Find, table: Table, key: str) -> Command:
    inner = table.table(key)
    if inner is None:
        return Command(())
    inner.allow(COMMAND_KEYS)
    inner.require("command")
    argv = _argv(find, inner)
    return Command(argv, _seconds(inner, "timeout", Command.timeout, LONGEST_COMMAND, least=0.1))


def _argv(find: Find, table: Table) -> tuple[str, ...]:
    """Return a command. A program of the component's own folder belongs to its digest."""
    argv = table.argv("command")
    for item in argv:
        _check_places(table, "command", item)
    if argv and argv[0].startswith("./"):
        find(table, "command", argv[0])
    return argv


def _check_places(table: Table, key: str, text: str) -> None:
    try:
        names = names_in_argument(text)
    except ValueError as error:
        table.fault(key, f"{text!r}: {error}")
        return
    for name in names:
        if name not in PLACES:
            table.fault(key, f"{text!r}: {{{name}}} is not one of {{instance}}, {{component}}; values arrive as JSON")


def _reading(find: Find, name: str, table: Table) -> Reading:
    kind = table.choice("type", tuple(READING_KEYS), "command")
    table.require("type")
    table.allow(READING_KEYS[kind])
    table.require({"command": "command", "file": "file", "prometheus": "query"}[kind])
    command = _argv(find, table) if kind == "command" else ()
    # A query has braces of its own, around labels.
    if "file" in table:
        _check_places(table, "file", table.text("file"))
    return Reading(
        name=name,
        kind=cast(Any, kind),
        command=command,
        file=table.text("file"),
        path=table.text("path"),
        query=table.text("query"),
        url=table.text("url"),
        every=_seconds(table, "every", Reading.every, SLOWEST_READING, least=0.1),
        counter=table.choice("kind", READING_KINDS, "gauge") == "counter",
    )


def _guard(name: str, table: Table, readings: dict[str, Reading]) -> Guard:
    table.allow(GUARD_KEYS)
    table.require("metric")
    metric = table.text("metric")
    if metric not in readings and metric != MEMORY_USED:
        table.fault("metric", f"{metric!r} is not one of {', '.join([*readings, MEMORY_USED])}")
    given = [key for key in LIMITS if key in table]
    if len(given) != 1:
        table.reader.report(table.node, table.field, f"must have one of {', '.join(LIMITS)}")
        return Guard(name, metric, 0.0)
    key = given[0]
    limit = table.number(key)
    of_control = key.endswith("_control")
    if of_control and (limit <= 1 if key == "above_control" else not 0 < limit < 1):
        table.fault(key, f"{limit:g} is not {'above 1' if key == 'above_control' else 'between 0 and 1'}, a factor")
    seconds = _seconds(table, "for", Guard.seconds, 600.0, least=0)
    return Guard(name, metric, limit, key.startswith("above"), of_control, seconds)


def _seconds(table: Table, key: str, default: float, most: float, *, least: float) -> float:
    """Return a number of seconds, which may be written as `5`, `5s`, `2m` or `24h`."""
    if key not in table:
        return default
    seconds = table.seconds(key, default)
    if not least <= seconds <= most:
        table.fault(key, f"{seconds:g} s is not from {least:g} to {most:g} seconds")
    return seconds
