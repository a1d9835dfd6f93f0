"""The recommendations of a study with a context: a table from context to settings."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trimtab.errors import InvalidInput, JsonValue
from trimtab.method import Verdict, VerdictLevel
from trimtab.space import Params, Scalar

# A user names context variables, and may give each its values, or a mapping of `at` and `cheaper` to values.
Observed: TypeAlias = Mapping[str, Sequence[Scalar] | Mapping[str, Sequence[Scalar]] | None] | Sequence[str]


@dataclass(frozen=True)
class ContextVariable:
    """A parameter that is observed with each trial and never chosen, and its values in the table."""

    name: str
    values: tuple[Scalar, ...] = ()
    """Empty in a new study: all values of the parameter that are not cheaper, if these are few."""
    cheaper: tuple[Scalar, ...] = ()
    """Values that are not in the table, at which a trial costs less. The study may run trials with them to learn."""


def context_variables(given: Observed) -> tuple[ContextVariable, ...]:
    """Return the context variables that a user names, with or without their values in the table and cheaper ones."""
    if isinstance(given, str):
        raise InvalidInput.of("context", given, 'a list such as ["load"] or a dict such as {"hit": [0.6, 0.9]}')
    named = given if isinstance(given, Mapping) else dict.fromkeys(given)
    return tuple(_variable(name, values) for name, values in named.items())


def _variable(name: str, given: Sequence[Scalar] | Mapping[str, Sequence[Scalar]] | None) -> ContextVariable:
    named = given if isinstance(given, Mapping) else {"at": given or ()}
    for key, values in named.items():
        if key not in ("at", "cheaper"):
            raise InvalidInput.of(f"context.{name}.{key}", values, "only the keys at and cheaper")
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidInput.of(f"context.{name}.{key}", values, "a list of values, such as [1, 2]")
    return ContextVariable(name, tuple(named.get("at", ())), tuple(named.get("cheaper", ())))


@dataclass(frozen=True)
class ContextRow:
    """The recommendation in one context.

    `settings` are the values to use: the best ones if their gain is proven, and otherwise the `default`, as
    `is_default` says. `best` are the best settings that were found so far; None if the default is the best, or nothing
    is known. `verdict` is what is known of the gain; None before the context has a measurement.
    """

    context: Params
    settings: Params
    is_default: bool
    best: Params | None = None
    verdict: Verdict | None = None
    default: Params | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the row as plain JSON, as in an export."""
        verdict = self.verdict
        return {
            "context": dict(self.context),
            "settings": dict(self.settings),
            "is_default": self.is_default,
            "default": None if self.default is None else dict(self.default),
            "best": None if self.best is None else dict(self.best),
            "verdict": None
            if verdict is None
            else {
                "level": str(verdict.level),
                "text": verdict.text,
                "code": verdict.code,
                "conditions": list(verdict.conditions),
                **{name: getattr(verdict, name) for name in _NUMBERS},
            },
        }


_NUMBERS = ("value", "runs", "default", "default_runs", "gain", "low", "high", "trials", "rounds", "disturbed_rounds")


@dataclass(frozen=True)
class ContextTable:
    """The recommendations of a study at a revision, with a row for each context."""

    study: str
    revision: int
    rows: tuple[ContextRow, ...]

    def lookup(self, context: Mapping[str, object]) -> ContextRow:
        """Return the row of a context. A number belongs to the nearest value of the table, or to the smaller of two.

        Raises InvalidInput (`context.<name>`) for a variable that is unknown or missing, and for a value that the table
        does not have.
        """
        if not self.rows:
            raise InvalidInput.of("context", dict(context), f"no context: study {self.study} has none")
        wanted: dict[str, Scalar] = {}
        for name, value in context.items():
            if name not in self.rows[0].context:
                raise InvalidInput.of(f"context.{name}", value, f"only {', '.join(self.rows[0].context)}")
        for name in self.rows[0].context:
            values = list(dict.fromkeys(row.context[name] for row in self.rows))
            known = ", ".join(map(repr, values))
            if name not in context:
                raise InvalidInput.of(f"context.{name}", None, f"a value such as {known}")
            given = context[name]
            if (number := _number(given)) is not None and all(_number(one) is not None for one in values):
                wanted[name] = min(values, key=lambda one: (abs(float(one) - number), float(one)))
                continue
            same = [one for one in values if one == given and isinstance(one, bool) == isinstance(given, bool)]
            if not same:
                raise InvalidInput.of(f"context.{name}", given, f"one of {known}")
            wanted[name] = same[0]
        return next(row for row in self.rows if row.context == wanted)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the table as plain JSON, from which `from_json` makes the same settings."""
        return {"study": self.study, "revision": self.revision, "rows": [row.to_json() for row in self.rows]}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "ContextTable":
        """Return the table that `to_json` has written. Raises InvalidInput for anything else."""
        try:
            rows = data["rows"]
            assert isinstance(rows, Sequence)
            return cls(str(data["study"]), int(str(data["revision"])), tuple(_row(row) for row in rows))
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput.of("table", str(error), "a table that `trimtab study contexts` has written") from error

    def write(self, path: Path) -> None:
        """Write the table to a file. A crash leaves either the old file or the new one."""
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        with partial.open("w") as file:
            json.dump(self.to_json(), file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    @classmethod
    def read(cls, path: Path) -> "ContextTable":
        """Return the table in a file. Raises OSError, and InvalidInput for a file with other content."""
        try:
            data = json.loads(path.read_text())
        except ValueError as error:
            raise InvalidInput.of("table", str(path), "a JSON file with a table") from error
        return cls.from_json(data if isinstance(data, dict) else {})


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _row(data: Mapping[str, object]) -> ContextRow:
    verdict, best, default = data["verdict"], data["best"], data.get("default")
    found = None
    if isinstance(verdict, Mapping):
        # Earlier versions have not written the rounds, the code and the conditions.
        numbers = {name: verdict.get(name, 0) for name in _NUMBERS}
        found = Verdict(
            text=str(verdict["text"]),
            level=VerdictLevel(str(verdict["level"])),
            code=str(verdict.get("code", "")),
            conditions=tuple(map(str, verdict.get("conditions", ()))),
            **numbers,
        )
    assert isinstance(data["context"], Mapping)
    assert isinstance(data["settings"], Mapping)
    return ContextRow(
        dict(data["context"]),
        dict(data["settings"]),
        bool(data["is_default"]),
        dict(best) if isinstance(best, Mapping) else None,
        found,
        dict(default) if isinstance(default, Mapping) else None,
    )
