"""Read YAML with the position of every value, so that errors name the file, line, field and allowed values.

Scalars follow YAML 1.2: only `true` and `false` are booleans (`on`, `off`, `yes` and `no` are strings), and `1e-3` is a
number.
"""

import difflib
import math
import re
from collections.abc import Iterator, Sequence

import yaml

from trimtab_components import quantities
from trimtab_components.errors import Problem
from trimtab_components.schema import Scalar

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# aliases of aliases can turn a short text into a huge one
MOST_VALUES = 100_000
MOST_LEVELS = 50
# a text counts as one more value for each of so many characters, because an alias can repeat a long one
_CHARACTERS = 64
# errors with a hint; the search for the nearest word takes most of the time of an error
_MOST_HINTS = 20
# longer ones are read as floats, because Python is slow at reading huge integers
LONGEST_INTEGER = 300
# libyaml's parser is ten times faster, if PyYAML was built with it
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Reader:
    """One file being read. It collects errors in a list that readers may share, so that all are reported at once."""

    def __init__(self, label: str, problems: list[Problem] | None = None) -> None:
        self.label = label
        self.problems = [] if problems is None else problems

    def nearest(self, word: str, words: Sequence[str]) -> str | None:
        """Return the word that the writer may have meant, for the first errors only."""
        if len(self.problems) >= _MOST_HINTS:
            return None
        return next(iter(difflib.get_close_matches(word, words, n=1)), None)

    def report(self, node: yaml.Node | None, field: str, message: str) -> None:
        """Record an error at `node`, or at the start of the file without one."""
        if node is None:
            self.problems.append(Problem(self.label, 1, field, message))
            return
        start, end = node.start_mark, node.end_mark
        length = end.column - start.column if end.line == start.line else 0
        self.problems.append(Problem(self.label, start.line + 1, field, message, start.column + 1, length))

    def parse(self, text: str) -> "Table | None":
        """Return the file's outermost mapping; record an error and return None if there is none."""
        try:
            if (place := _too_deep(text)) is not None:
                line, column = place
                message = f"lists and mappings are nested more than {MOST_LEVELS} levels deep"
                self.problems.append(Problem(self.label, line, "syntax", message, column))
                return None
            node = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            reported = " ".join(part for part in (error.context, error.problem) if part)
            self.problems.append(Problem(self.label, line, "syntax", f"not valid YAML: {reported}", column))
            return None
        except yaml.YAMLError as error:
            self.problems.append(Problem(self.label, 1, "syntax", f"not valid YAML: {error}"))
            return None
        if not isinstance(node, yaml.MappingNode):
            self.report(node, "file", "must be a mapping: lines of `key: value`")
            return None
        if not _is_bounded(node):
            self.report(node, "file", f"has more than {MOST_VALUES} values, counting those that aliases repeat")
            return None
        return Table(self, node, "")


class Table:
    """A mapping in the file. For a wrong value, each getter records an error and returns a harmless value."""

    def __init__(self, reader: Reader, node: yaml.MappingNode, field: str) -> None:
        self.reader = reader
        self.node = node
        self.field = field
        self._values: dict[str, yaml.Node] = {}
        self._keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                reader.report(key, field or "file", "a key must be a plain string")
            elif key.value in self._values:
                reader.report(
                    key,
                    self.path(key.value),
                    f"appears twice; first on line {self._keys[key.value].start_mark.line + 1}",
                )
            else:
                self._keys[key.value], self._values[key.value] = key, value

    def path(self, key: str) -> str:
        """Return the full name of one of this mapping's fields."""
        return f"{self.field}.{key}" if self.field else key

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def at(self, key: str) -> yaml.Node:
        """Return the node of a field, or of this mapping if the field is absent."""
        return self._values.get(key, self.node)

    def fault(self, key: str, message: str) -> None:
        """Record an error of the field `key`."""
        self.reader.report(self.at(key), self.path(key), message)

    def allow(self, keys: Sequence[str]) -> None:
        """Record an error for every key that is not one of `keys`, with the nearest allowed key."""
        for key in self._values:
            if key not in keys:
                near = self.reader.nearest(key, keys)
                hint = f"; did you mean {near!r}?" if near else "."
                self.reader.report(self._keys[key], self.path(key), f"unknown key{hint} Allowed: {', '.join(keys)}")

    def require(self, *keys: str) -> None:
        """Record an error for every absent key."""
        for key in keys:
            if key not in self._values:
                self.reader.report(self.node, self.path(key), "is missing")

    # -- scalars

    def scalar(self, key: str) -> Scalar | None:
        """Return a plain value with its YAML 1.2 type; None if it is absent or not a plain value."""
        return self._scalar(self._values[key], self.path(key)) if key in self._values else None

    def text(self, key: str, default: str = "", pattern: str = "", allowed: str = "") -> str:
        """Return a string. If `pattern` does not match all of it, record an error with `allowed`."""
        value = self.scalar(key)
        if value is None:
            return default
        if not isinstance(value, str):
            # an unquoted 7 is accepted as the string "7"
            node = self._values[key]
            value = node.value if isinstance(node, yaml.ScalarNode) else ""
        if pattern and not re.fullmatch(pattern, value):
            self.fault(key, f"{value!r} is not {allowed}")
        return value

    def choice(self, key: str, options: Sequence[str], default: str) -> str:
        """Return one of `options`."""
        value = self.text(key, default)
        if value not in options:
            near = self.reader.nearest(value, options)
            hint = f" Did you mean {near!r}?" if near else ""
            self.fault(key, f"{value!r} is not one of {', '.join(options)}.{hint}")
            return default
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.scalar(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(key, f"{value!r} is not true or false")
            return default
        return value

    def number(self, key: str, default: float = 0.0, *, above: float | None = None) -> float:
        """Return a finite number greater than `above`."""
        value = self.scalar(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fault(key, f"{value!r} is not a number")
            return default
        if above is not None and value <= above:
            self.fault(key, f"{value!r} is not above {above:g}")
        return value

    def seconds(self, key: str, default: float = 0.0, *, above: float | None = None) -> float:
        """Return a time in seconds, which may be written as `5`, `5s`, `2m`, `1h30m` or `24h`."""
        value = self.scalar(key)
        if not isinstance(value, str):
            return self.number(key, default, above=above)
        try:
            found = quantities.seconds(value)
        except quantities.QuantityError:
            self.fault(key, f"{value!r} is not a time, such as 5, 5s, 2m or 24h")
            return default
        if above is not None and found <= above:
            self.fault(key, f"{value!r} is not above {above:g}")
        return found

    def integer(self, key: str, default: int = 0, *, minimum: int | None = None) -> int:
        """Return an integer of at least `minimum`."""
        value = self.scalar(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, f"{value!r} is not an integer")
            return default
        if minimum is not None and value < minimum:
            self.fault(key, f"{value!r} is below the minimum {minimum}")
        return value

    # -- lists and mappings

    def scalars(self, key: str) -> tuple[Scalar, ...]:
        """Return a list of plain values."""
        found = [
            self._scalar(node, f"{self.path(key)}[{i}]")
            for i, node in enumerate(self._sequence(key, "a list of values"))
        ]
        return tuple(value for value in found if value is not None)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(self._texts(self._sequence(key, "a list of strings"), self.path(key)))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers."""
        values = self.scalars(key)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int):
                self.fault(key, f"{value!r} is not an integer")
        return tuple(value for value in values if isinstance(value, int))

    def text_or_texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; a single string becomes a list of one."""
        if isinstance(self._values.get(key), yaml.ScalarNode):
            return (self.text(key),)
        return self.texts(key)

    def argv(self, key: str) -> tuple[str, ...]:
        """Return a command as a list of strings. A single string is an error: no shell splits it."""
        items = self.texts(key)
        if key in self._values and not items and isinstance(self._values[key], yaml.SequenceNode):
            self.fault(key, 'must be a list with the program first: [program, "argument"]')
        return items

    def argvs(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Return a list of commands."""
        commands = []
        for i, node in enumerate(self._sequence(key, 'a list of commands, each a list: [[program, "argument"], ...]')):
            field = f"{self.path(key)}[{i}]"
            if not isinstance(node, yaml.SequenceNode) or not node.value:
                self.reader.report(node, field, 'must be a list with the program first: [program, "argument"]')
            else:
                commands.append(tuple(self._texts(node.value, field)))
        return tuple(commands)

    def mapping_of_texts(self, key: str) -> dict[str, str]:
        """Return a mapping from names to strings."""
        table = self.table(key)
        return {name: table.text(name) for name in table} if table else {}

    def is_table(self, key: str) -> bool:
        """Return whether the field exists and is a mapping."""
        return isinstance(self._values.get(key), yaml.MappingNode)

    def table(self, key: str) -> "Table | None":
        """Return a mapping; None if it is absent or not a mapping."""
        node = self._values.get(key)
        if node is None:
            return None
        if not isinstance(node, yaml.MappingNode):
            self.fault(key, "must be a mapping: lines of `key: value`")
            return None
        return Table(self.reader, node, self.path(key))

    def tables(self, key: str) -> "list[tuple[str, Table]]":
        """Return a mapping from names to mappings, as pairs."""
        outer = self.table(key)
        if outer is None:
            return []
        found = [(name, outer.table(name)) for name in outer]
        return [(name, table) for name, table in found if table is not None]

    def list_of_tables(self, key: str) -> "list[Table]":
        """Return a list of mappings."""
        tables = []
        for i, node in enumerate(self._sequence(key, "a list of mappings")):
            field = f"{self.path(key)}[{i}]"
            if isinstance(node, yaml.MappingNode):
                tables.append(Table(self.reader, node, field))
            else:
                self.reader.report(node, field, "must be a mapping: {key: value}")
        return tables

    def _sequence(self, key: str, expected: str) -> list[yaml.Node]:
        node = self._values.get(key)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fault(key, f"must be {expected}")
            return []
        return list(node.value)

    def _texts(self, nodes: Sequence[yaml.Node], field: str) -> list[str]:
        texts = []
        for i, node in enumerate(nodes):
            if isinstance(node, yaml.ScalarNode):
                texts.append(node.value)
            else:
                message = "must be a string; quote it if it contains braces or brackets"
                self.reader.report(node, f"{field}[{i}]", message)
        return texts

    def _scalar(self, node: yaml.Node, field: str) -> Scalar | None:
        if not isinstance(node, yaml.ScalarNode):
            self.reader.report(node, field, "must be a plain value, not a list or a mapping")
            return None
        text: str = node.value
        if node.style not in (None, ""):  # quoted; libyaml gives "" for plain
            return text
        if text in ("true", "True", "TRUE"):
            return True
        if text in ("false", "False", "FALSE"):
            return False
        if text in ("", "~", "null", "Null", "NULL"):
            self.reader.report(node, field, "has no value")
            return None
        if _INTEGER.fullmatch(text) and len(text) <= LONGEST_INTEGER:
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text


def _too_deep(text: str) -> tuple[int, int] | None:
    """Return the line and column where the text is nested too deeply; libyaml's composer would overflow its stack."""
    levels = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            levels += 1
            if levels > MOST_LEVELS:
                mark = event.start_mark
                return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)  # marks are always set here
        elif isinstance(event, yaml.CollectionEndEvent):
            levels -= 1
    return None


def _is_bounded(node: yaml.Node) -> bool:
    """Return whether a node has at most MOST_VALUES values, counting repetitions by aliases and long texts."""
    try:
        return _size(node, {}) <= MOST_VALUES
    except RecursionError:  # deeply nested aliases
        return False


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value) // _CHARACTERS
    if id(node) not in known:
        known[id(node)] = MOST_VALUES + 1  # for a node that contains itself, until its size is known
        below = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in below)
    return known[id(node)]
