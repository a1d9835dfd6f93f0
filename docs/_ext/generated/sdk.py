"""The public names of the SDK, as directives of Sphinx's autodoc."""

import inspect
from collections.abc import Iterable

import trimtab

GROUPS = {
    "Client and study": ("Client", "Study"),
    "Search spaces": ("Float", "Int", "Ordinal", "Categorical", "Bool"),
    "Objectives": ("Minimize", "Maximize"),
    "Functions": ("with_arguments",),
}
# Names for types, which stand in signatures as the types themselves.
ALIASES = ("Objective", "Parameter", "Params", "errors")
ERRORS = """\
```{{eval-rst}}
.. automodule:: trimtab.errors
   :members:
   :exclude-members: {names}
```
"""


def sections() -> str:
    """Return a section for each group of names."""
    exported = {name: getattr(trimtab, name) for name in trimtab.__all__ if name not in ALIASES}
    errors = [name for name, value in exported.items() if isinstance(value, type) and issubclass(value, Exception)]
    grouped = {*errors, *(name for names in GROUPS.values() for name in names)}
    groups = {**GROUPS, "Values that calls take and return": [name for name in exported if name not in grouped]}
    parts = [f"## {title}\n\n{_directives(names)}" for title, names in groups.items()]
    return "\n".join([*parts, f"## Errors\n\n{_directives(errors)}", ERRORS.format(names=", ".join(errors))])


def _directives(names: Iterable[str]) -> str:
    blocks = [_directive(name) for name in names]
    return "\n".join(["```{eval-rst}", *blocks, "```\n"])


def _directive(name: str) -> str:
    if inspect.isfunction(getattr(trimtab, name)):
        return f".. autofunction:: trimtab.{name}\n"
    return f".. autoclass:: trimtab.{name}\n   :members:\n"
