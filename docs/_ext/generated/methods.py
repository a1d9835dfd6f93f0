"""Algorithms and policies with all their options, from the registries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from docs._ext.generated.django_setup import set_up
from docs._ext.generated.markdown import cell, code, table

if TYPE_CHECKING:
    from service.core.options import Option
    from service.planning.catalogue import Catalogue, Entry


def algorithms() -> str:
    """Return a section for each algorithm."""
    from service.algorithms import registry

    facts = {}
    for name in registry.names():
        entry = registry.describe(name)
        cost = "on a worker" if entry.cost.name == "COSTLY" else "within the request"
        most = entry.most_objectives
        goals = "any number of objectives" if most is None else f"at most {most} objective{'s' if most > 1 else ''}"
        learns = "learns from results" if entry.uses_history else "does not look at results"
        facts[name] = f"Computed {cost}; {goals}; {learns}."
    return _sections(_catalogue().algorithms, facts)


def resampling() -> str:
    """Return a section for each resampling policy."""
    return _sections(_catalogue().resampling)


def estimators() -> str:
    """Return a section for each estimator."""
    return _sections(_catalogue().estimators)


def pruning() -> str:
    """Return a section for each pruning policy."""
    return _sections(_catalogue().pruning)


def stopping() -> str:
    """Return a section for each stopping rule."""
    return _sections(_catalogue().stopping)


def _catalogue() -> Catalogue:
    set_up()
    from service.planning.catalogue import catalogue

    return catalogue()


def _sections(entries: Sequence[Entry], facts: dict[str, str] | None = None) -> str:
    parts = []
    for entry in entries:
        more = (facts or {}).get(entry.name) or ("" if entry.several else "For one objective.")
        parts.append(f"### {code(entry.name)}\n\n{cell(entry.doc)} {more}\n")
        if entry.options:
            parts.append(table(("option", "default", "allowed", "meaning"), map(_row, entry.options)))
    return "\n".join(parts)


def _row(option: Option) -> tuple[str, str, str, str]:
    value = str(option.default).lower() if option.type == "bool" else option.default
    default = "chosen by itself" if value is None else code(value)
    return code(option.name), default, option.allowed(), option.doc
