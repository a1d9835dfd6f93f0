"""Read a metric from a run's output, by regular expression or as JSON."""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trimtab_agent.files import open_regular
from trimtab_components import quantities

# Maximum number of bytes to read from a file of the application.
FILE_LIMIT = 16 << 20
# The service takes no larger values.
LARGEST = 1e100
# How much work the search for JSON documents in a text may be: characters that are read, and as many for each place
# that is tried as the beginning of one.
MOST_WORK = 32 << 20
WORK_OF_A_TRY = 30
# An object or a list, as far as its first item shows: brackets of other kinds in each line of a log cost nothing.
_BEGINNING = re.compile(
    r'\{\s*(?:\}|"(?:[^"\\\n]|\\.)*"\s*:)|\[\s*(?:["{\[\]]|(?:-?\d[\d.eE+-]*|true|false|null|-?Infinity|NaN)\s*[,\]])'
)
_PYTHON_DICT = re.compile(r"\{'[^'\n]*': ")


class NoValueError(Exception):
    """The output does not contain the metric. `str(error)` says what was searched, and where."""


def by_regex(text: str, metric: Mapping[str, Any]) -> float:
    """Return the number in the pattern's group `value`, or else in its first group. `take` selects one of several
    matches.

    Raises:
        NoValueError: there is no match, or the match is not a number.
    """
    pattern = re.compile(metric["pattern"], re.MULTILINE)
    group: str | int = "value" if "value" in pattern.groupindex else 1
    found = [match.group(group) for match in pattern.finditer(text)]
    if not found:
        raise NoValueError(f"nothing in {metric['source']} matches {metric['pattern']!r}")
    how = metric["take"]
    # Only what is taken must be a number: a tool may print `rate: warming up` before.
    used = [_taken(found, how)] if how in ("last", "first") else found
    return float(_taken([number(one, metric) for one in used], how))


def by_json(text: str, metric: Mapping[str, Any]) -> float:
    """Return the number at a dotted path of the JSON in a text: all of it, or the last document that has the path.

    Raises:
        NoValueError: the text has no JSON, or there is no number at the path.
    """
    missing = ""
    for document in documents(text):
        try:
            value = _at(document, metric)
        except NoValueError as error:
            missing = missing or str(error)
            continue
        return number(value, metric)
    hint = ""
    if _PYTHON_DICT.search(text):
        hint = ": a dictionary as Python prints it is not JSON. Print json.dumps(...) of it"
    raise NoValueError(missing or f"{metric['source']} has no JSON document{hint}")


def documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents in a text, the last one first: the text itself, its last line, or any part of it."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):  # a RecursionError: nested too deeply
        pass
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    with suppress(ValueError, RecursionError):
        yield json.loads(last)
    found: list[Any] = []
    decoder = json.JSONDecoder()
    place = work = 0
    while work < MOST_WORK and (begin := _BEGINNING.search(text, place)):
        work += WORK_OF_A_TRY
        try:
            document, place = decoder.raw_decode(text, begin.start())
            found.append(document)
        except json.JSONDecodeError as error:
            # The exception counts the lines before its place.
            work += error.pos - begin.start() + error.pos // 64
            place = begin.start() + 1
        except (ValueError, RecursionError):  # a number with too many digits, or nested too deeply
            work += MOST_WORK // 100
            place = begin.start() + 1
    yield from reversed(found)


def _at(value: Any, metric: Mapping[str, Any]) -> Any:
    """Return what is at the path. A key may contain points, such as `percentile.99.000000`."""
    keys: list[str] = metric["path"].split(".") if metric["path"] else []
    while keys:
        key, count = keys[0], 1
        if isinstance(value, dict):
            names = [".".join(keys[:end]) for end in range(len(keys), 0, -1)]
            key = next((name for name in names if name in value), key)
            count = key.count(".") + 1
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise NoValueError(f"{metric['source']} has no {metric['path']!r}: {key!r} is missing") from None
        keys = keys[count:]
    return value


def number(value: object, metric: Mapping[str, Any]) -> float:
    """Return a value as a finite number, at most LARGEST. A text may have a unit, such as `16.0 ms`.

    Raises:
        NoValueError: the value is not such a number.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        found = quantities.parse(value, metric.get("unit", "")) if isinstance(value, str) else float(value)
    except quantities.QuantityError as error:
        raise NoValueError(str(error)) from None
    except ValueError:
        raise NoValueError(f"{'null' if value is None else repr(value)} is not a number") from None
    except OverflowError:
        raise NoValueError("an integer is too large for a number") from None
    if not math.isfinite(found):
        raise NoValueError(f"{found!r} is not a finite number")
    if abs(found) > LARGEST:
        raise NoValueError(f"{found!r} is too large for a measurement: it is not from {-LARGEST:g} to {LARGEST:g}")
    return found


def read_source(metric: Mapping[str, Any], streams: Mapping[str, str], work: str, owner: int | None = None) -> str:
    """Return the text that contains the metric.

    Args:
        metric: its `source` is stdout, stderr, or a file in `work`.
        streams: paths of the captured output streams.
        work: the trial's work folder.
        owner: the owner that a file in `work` must have; None: any.

    Raises:
        NoValueError: the application did not write the file, or it is not a regular file.
    """
    source = metric["source"]
    path = streams.get(source) or os.path.join(work, source)
    try:
        with open_regular(path, None if source in streams else owner) as file:
            return file.read(FILE_LIMIT).decode("utf-8", "replace")
    except OSError as error:
        raise NoValueError(f"{source} cannot be read: {error.strerror}") from None


def aggregate(values: Sequence[float], how: str) -> float:
    """Return one number for several runs."""
    if how == "median":
        ordered = sorted(values)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return float(_taken(values, how))


def _taken(values: Sequence[Any], how: str) -> Any:
    if how in ("last", "first"):
        return values[-1 if how == "last" else 0]
    total = math.fsum(values)
    return {"min": min(values), "max": max(values), "sum": total, "mean": total / len(values)}[how]
