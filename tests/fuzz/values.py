"""The values that mutations put into requests: numbers, texts, structures, and the sizes that the limits state."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LIMITS = Path(__file__).resolve().parents[2] / "docs/reference/limits.md"
# No body of a request may have more bytes, so that no mutation makes a larger one but by a little.
LONGEST = 4 * 1024 * 1024
MOST_ENTRIES = 200_000

NUMBERS: Sequence[Any] = (
    *(0, 1, -1, 2, 3, 63, 64, 65, 1000, 1001, -0.0, 0.5, 1e-9, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30),
    *(1e100, 1e154, 1e155, -1e155, 1e300, 1e308, -1e308, 1.7976931348623157e308, -1.7976931348623157e308),
    *(math.inf, -math.inf, math.nan),
)
TEXTS: Sequence[str] = (
    *("", " ", "x", "n", "\0", "a\0b", "a\nb", "a\rb", "\t", "\x1b[2J\x1b]0;x\x07", "\x7f", "\x9b31m", "\u2028"),
    *("ß漢💡", "\u202emoc.elgoog", "\u2066x\u2069", "\u200b", "\ufeff", "\ufffe", "e\u0301", "\U0010ffff"),
    *("\u0130", "\u017f"),
    *("../..", "/etc/passwd", "a/b", ".", "..", "a.b", "%2e%2e%2f", "%00", "%s%s%n", "{}", "{0.__class__}", "${x}"),
    *("'; --", '"', "\\", "<script>x</script>", "=1+1", "@x", "-1", "+1", "null", "NaN", "Infinity", "1e999", "true"),
    *("0x10", "1_000", "٣", "9" * 400, "x" * 63, "x" * 64, "x" * 300, "2026-01-31T12:00:00Z", "9999-12-31T23:59:59Z"),
    *("0001-01-01T00:00:00+14:00", "00000000-0000-0000-0000-000000000000", "f" * 32, "ab" * 32),
)
# What long texts are made of: words, levels of nesting, and what expressions and patterns are slow at.
FILLERS: Sequence[str] = (
    *("x", " ", "%20", "(", "[", "{", "9", "-", "a ", "-x", ".*", "x\n", "a: ", "- ", "x + ", "(x)*", "💡", "\0"),
    *("\u0301", "--o=1 ", "x*2**x+", "not ", "x<n and ", "&a [*a,*a]\n", "/a", ",", "=", "a=b;", "%41", '"', "\\"),
)
WRONG_TYPES: Sequence[Any] = (None, True, False, 0, 1.5, "", "1", [], {}, [[]], [None], {"": ""}, {"a": {"b": []}})
# JSON that no library writes, in place of one value of a body.
RAW: Sequence[str] = ("1e999", "-1e999", "NaN", "9" * 5000, "1" + "0" * 4000 + "e-4000", '"\\ud800"', "[1,]", "0x1", "")


@cache
def sizes() -> Sequence[int]:
    """Return the sizes that docs/reference/limits.md states, each with its neighbours, and some more."""
    found = {1, 2, 10, 63, 64, 255, 256}
    for row in re.findall(r"^\|.*\|$", LIMITS.read_text(), re.MULTILINE):
        for number, unit in re.findall(r"(?<![\w.^])(\d{1,3}(?:,\d{3})+|\d+)(?: (KiB|MiB))?(?![\w.])", row):
            size = int(number.replace(",", "")) * {"": 1, "KiB": 1024, "MiB": 1024**2}[unit]
            if 1 < size <= LONGEST:
                found |= {size - 1, size, size + 1}
    return sorted(found)


# --- Structures, in place of a value whose name says what it is


def _bools(count: int, parent: Callable[[int], int | None], values: Sequence[Any] = (True, False)) -> list[Any]:
    """Return boolean parameters b0, b1, ... of which each is conditional on the parameter that `parent` gives."""
    made: list[Any] = []
    for number in range(count):
        one: dict[str, Any] = {"name": f"b{number}", "type": "bool"}
        above = parent(number)
        if above is not None:
            one["condition"] = {"parent": f"b{above}", "values": list(values)}
        made.append(one)
    return made


def _below(number: int) -> int | None:
    return number - 1 if number else None


PARAMETERS: Mapping[str, Callable[[], list[Any]]] = {
    "a parameter below itself": lambda: _bools(1, lambda number: 0),
    "two parameters below each other": lambda: _bools(2, lambda number: 1 - number),
    "a ring of 40 conditions": lambda: _bools(40, lambda number: (number + 1) % 40),
    "50 conditions, each below another": lambda: _bools(50, _below),
    "51 levels of conditions": lambda: _bools(52, _below),
    "1,000 levels of conditions": lambda: _bools(1000, _below),
    "1,000 levels of conditions, the deepest first": lambda: _bools(1000, _below)[::-1],
    "999 conditions below one parameter": lambda: _bools(1000, lambda number: 0 if number else None),
    "a binary tree of conditions": lambda: _bools(1000, lambda number: (number - 1) // 2 if number else None),
    "1,001 parameters": lambda: _bools(1001, lambda number: None),
    "60 parameters of 10,000 values": lambda: [
        {"name": f"c{number}", "type": "categorical", "values": [f"{number} {value}" for value in range(500)]}
        for number in range(60)
    ],
    "two parameters of one name": lambda: _bools(1, _below) * 2,
    "24 integers": lambda: [{"name": f"n{number}", "type": "int", "min": 0, "max": 2**31} for number in range(24)],
    "a wide log scale": lambda: [{"name": "x", "type": "float", "min": 5e-324, "max": 1.7e308, "log": True}],
    "a fine grid": lambda: [{"name": "x", "type": "float", "min": 0.0, "max": 1e9, "step": 1e-9}],
    "a fine factor": lambda: [{"name": "x", "type": "float", "min": 1e-300, "max": 1e300, "factor": 1.0000001}],
    "a huge integer": lambda: [{"name": "n", "type": "int", "min": -(2**62), "max": 2**62}],
    "values that are alike": lambda: [{"name": "c", "type": "categorical", "values": [1, 1.0, True, "1", "1.0"]}],
    "no parameter": list,
}
CONSTRAINTS: Mapping[str, Callable[[], list[Any]]] = {
    "a power of powers": lambda: ["x ** 9 ** 9 ** 9 > n"],
    "huge integers": lambda: ["n * 10 ** 4000 > 1"],
    "200 levels": lambda: ["(" * 200 + "x" + ")" * 200 + " < 1"],
    "5,000 levels": lambda: ["(" * 900 + "x" + ")" * 900 + " < 1"],
    "500 parts": lambda: [" + ".join(["x"] * 240) + " < 1"],
    "1,001 constraints": lambda: ["x <= 1"] * 1001,
    "never true": lambda: ["x < -1"],
    "never true for the service to find out": lambda: ["x * x + 1 < n - n"],
    "almost never true": lambda: ["x * 1000000 <= 1"],
    "division by zero": lambda: ["1 / (n - n) > 0", "n % 0 == 0"],
    "code": lambda: ["__import__('os').system('x') == 0", "x.__class__ == 1", "[x for x in (1,)] == 1"],
    "not finite": lambda: ["x < 1e999", "x == x * 1e308 * 1e308"],
}
_LINE = "parameters: {x: {type: float, min: 0, max: 1}}\nobjectives: [{minimize: loss}]\n"
STUDY_FILES: Mapping[str, Callable[[], str]] = {
    "aliases of aliases": lambda: (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9))
    ),
    "an alias of itself": lambda: "a: &a [*a]\n" + _LINE,
    "a merge of itself": lambda: "x: &x {<<: *x}\n" + _LINE,
    "a tag of Python": lambda: "!!python/object/apply:os.system [x]\n",
    "deep lists": lambda: "[" * 5000,
    "deep blocks": lambda: "\n".join(" " * n + "a:" for n in range(700)),
    "many keys": lambda: "\n".join(f"k{n}: {n}" for n in range(15_000)),
    "the same key": lambda: "a: 1\n" * 20_000,
    "a parameter below itself": lambda: (
        "parameters:\n  a: {type: bool, condition: {parent: a, values: [true]}}\nobjectives: [{minimize: loss}]\n"
    ),
    "1,000 levels of conditions": lambda: (
        "parameters:\n  b0: {type: bool}\n"
        + "".join(
            f"  b{n}: {{type: bool, condition: {{parent: b{n - 1}, values: [true, false]}}}}\n" for n in range(1, 1000)
        )
        + "objectives: [{minimize: loss}]\n"
    ),
    "many parameters": lambda: (
        "parameters:\n"
        + "".join(f"  p{n}: {{type: float, min: 0, max: 1}}\n" for n in range(2500))
        + "objectives: [{minimize: loss}]\n"
    ),
    "many constraints": lambda: _LINE + "constraints:\n" + "- x <= 1\n" * 10_000,
    "huge numbers": lambda: _LINE.replace("max: 1}", "max: 1" + "0" * 400 + "}"),
    "numbers of other bases": lambda: _LINE.replace("max: 1}", "max: 0x" + "f" * 20_000 + "}"),
    "a time of base 60": lambda: _LINE + "seed: " + "1:" * 5000 + "1\n",
    "two documents": lambda: _LINE + "---\n" + _LINE,
    "control characters": lambda: _LINE + 'description: "\x1b[31m\\u202e\\0"\n',
}
COMPONENT_FILES: Mapping[str, Callable[[], str]] = {
    **STUDY_FILES,
    "a slow pattern": lambda: (
        "name: c\napplications: {main: {command: [run]}}\n"
        "metrics: {loss: {type: regex, pattern: '((a+)+)+((a|a)*)*$(.*)'}}\n"
    ),
    "many metrics": lambda: (
        "name: c\napplications: {main: {command: [run]}}\nmetrics:\n"
        + "".join(f"  m{n}: {{type: regex, pattern: '(.*)'}}\n" for n in range(1500))
    ),
    "many applications": lambda: (
        "name: c\napplications:\n" + "".join(f"  a{n}: {{command: [run, '{{x}}']}}\n" for n in range(1700))
    ),
    "a cycle of conditions": lambda: (
        "name: c\nparameters:\n  a: {type: bool, condition: {parent: b, values: [true]}}\n"
        "  b: {type: bool, condition: {parent: a, values: [true]}}\napplications: {main: {command: [run]}}\n"
    ),
}
CONDITIONS: Mapping[str, Callable[[], list[str]]] = {
    "many conditions": lambda: ["number > 0"] * 300,
    "a huge number": lambda: ["number > 1e999", "number > " + "9" * 900],
    "not a number": lambda: ["number > nan", "number = inf"],
    "an unknown column": lambda: ["password ~ a"],
    "operators": lambda: ["number >= <= 1", "number", "", "~", "number ~ %_%"],
    "a metric of quotes": lambda: ["metric:\"'; -- > 1", "param:x->>'y' = 1"],
    "control characters": lambda: ["actor ~ \0", "target ~ \u202e"],
}
METRICS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "1,000 metrics": lambda: {"loss": 1.0, "seconds": 1.0, **{f"m{number}": number for number in range(998)}},
    "1,001 metrics": lambda: {"loss": 1.0, **{f"m{number}": number for number in range(1001)}},
    "the largest": lambda: {"loss": 1.7976931348623157e308, "seconds": -1.7976931348623157e308},
    "the square overflows": lambda: {"loss": 1e155, "seconds": 1e155, "mb": 1e155},
    "the smallest": lambda: {"loss": 5e-324, "seconds": 5e-324},
    "not finite": lambda: {"loss": math.inf, "seconds": math.nan},
    "names": lambda: {"loss": 1.0, "\x1b[2J": 1.0, "\u202e": 2.0, "=1+1": 3.0, "": 4.0, " ": 5.0},
}
DEEP: Mapping[str, Callable[[], Any]] = {
    f"{levels} levels": lambda levels=levels: json.loads('{"a":' * levels + "1" + "}" * levels)  # type: ignore[misc]
    for levels in (60, 64, 65, 200)
}
# By the name of a field in JSON or in a message.
STRUCTURES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "parameters": PARAMETERS,
    "space": PARAMETERS,
    "add": PARAMETERS,
    "constraints": CONSTRAINTS,
    "outcome_constraints": CONSTRAINTS,
    "file": STUDY_FILES,
    "text": COMPONENT_FILES,
    "where": CONDITIONS,
    "metrics": METRICS,
    "options": DEEP,
    "stopping": DEEP,
    "attributes": DEEP,
    "spec": DEEP,
}
