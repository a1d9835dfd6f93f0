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
# How many places of a text are tried as the beginning of a JSON document. Most tools print one document.
MOST_BEGINNINGS = 10_000
_BEGINNING = re.compile(r"[{\[]")


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
    found = [number(match.group(group), metric) for match in pattern.finditer(text)]
    if not found:
        raise NoValueError(f"nothing in {metric['source']} matches {metric['pattern']!r}")
    return _taken(found, metric["take"])


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
    raise NoValueError(missing or f"{metric['source']} has no JSON document")


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
    place = 0
    for _ in range(MOST_BEGINNINGS):
        begin = _BEGINNING.search(text, place)
        if begin is None:
            break
        try:
            document, place = decoder.raw_decode(text, begin.start())
            found.append(document)
        except (ValueError, RecursionError):
            place = begin.start() + 1
    yield from reversed(found)


def _at(value: Any, metric: Mapping[str, Any]) -> Any:
    for key in metric["path"].split(".") if metric["path"] else []:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise NoValueError(f"{metric['source']} has no {metric['path']!r}: {key!r} is missing") from None
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
        raise NoValueError(f"{value!r} is not a number") from None
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
    return _taken(values, how)


def _taken(values: Sequence[float], how: str) -> float:
    if how in ("last", "first"):
        return values[-1 if how == "last" else 0]
    total = math.fsum(values)
    return {"min": min(values), "max": max(values), "sum": total, "mean": total / len(values)}[how]
