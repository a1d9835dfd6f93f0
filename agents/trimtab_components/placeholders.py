"""The placeholders `{NAME}` in an argument and `${NAME}` in a template.

A value replaces a placeholder in an item of a list, and nothing splits that item afterwards, so a value cannot become a
second argument.
"""

import re
from collections.abc import Callable, Mapping, Sequence

RESERVED = ("build", "component", "work", "flags")
PLACES = ("build", "component", "work")

_ARGUMENT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_TEMPLATE = re.compile(r"\$\$\{|\$\{([^}]*)\}")


class AbsentError(Exception):
    """The item names a parameter that is not active in this configuration."""


def names_in_argument(item: str) -> list[str]:
    """Return the names between braces.

    Raises:
        ValueError: a brace is neither doubled nor part of a pair.
    """
    names = []
    for match in _ARGUMENT.finditer(item):
        if match.group() in ("{", "}"):
            raise ValueError("write a literal brace twice: {{ or }}")
        if match.group(1) is not None:
            names.append(match.group(1))
    return names


def names_in_template(text: str) -> list[tuple[int, str]]:
    """Return the names in `${}`, each with its line number."""
    return [
        (text.count("\n", 0, m.start()) + 1, m.group(1)) for m in _TEMPLATE.finditer(text) if m.group(1) is not None
    ]


def is_flags(item: str) -> bool:
    """Return whether the item is `{flags}` or `{flags:GROUP}`, which becomes any number of items."""
    return re.fullmatch(r"\{flags(:[^{}]*)?\}", item) is not None


def flags_group(item: str) -> str:
    """Return the group of such an item; "" for `{flags}`."""
    return item[1:-1].partition(":")[2]


def render_argument(item: str, values: Mapping[str, str]) -> str:
    """Return the item with its placeholders replaced.

    Raises:
        AbsentError: a name has no value.
    """
    return _ARGUMENT.sub(lambda match: _replace(match, values, {"{{": "{", "}}": "}"}), item)


def render_arguments(items: Sequence[str], values: Mapping[str, str], flags: Mapping[str, Sequence[str]]) -> list[str]:
    """Return an argv. An item that names an inactive parameter is omitted."""
    argv: list[str] = []
    for item in items:
        if is_flags(item):
            argv += flags.get(flags_group(item), ())
            continue
        try:
            argv.append(render_argument(item, values))
        except AbsentError:
            continue
    return argv


def render_template(text: str, values: Mapping[str, str]) -> str:
    """Return a template's text. A line that names an inactive parameter is omitted."""
    replace: Callable[[re.Match[str]], str] = lambda match: _replace(match, values, {"$${": "${"})  # noqa: E731
    lines = []
    for line in text.splitlines(keepends=True):
        try:
            lines.append(_TEMPLATE.sub(replace, line))
        except AbsentError:
            continue
    return "".join(lines)


def _replace(match: re.Match[str], values: Mapping[str, str], literals: Mapping[str, str]) -> str:
    name = match.group(1)
    if name is None:
        return literals[match.group()]
    if name not in values:
        raise AbsentError(name)
    return values[name]
