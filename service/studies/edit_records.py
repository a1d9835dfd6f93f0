"""Records of the edits of a study's space: what was edited, and how the trials of that time count since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service.core.edits import TOGETHER, Edit
from service.core.parameters import Scalar


@dataclass(frozen=True, slots=True)
class EarlierTrials:
    """How the trials of a study count after an edit of its space.

    `used` trials of `total` count, `imputed` of them with `values` of parameters that they lack. `left_out` counts the
    others by the parameter whose value they cannot have any more. `unfinished` of all were running or waiting; they
    finish with their configuration and count by the same rule.
    """

    total: int
    used: int
    imputed: int
    unfinished: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The numbers as a sentence."""
        found = f"{self.used} of {self.total} trials are used"
        if self.imputed:
            values = ", ".join(f"{name} = {value!r}" for name, value in self.values.items())
            found += f", {self.imputed} of them with {values} in place of a value that they lack"
        for name, count in self.left_out.items():
            # No parameter is at fault if the values do not fit together: a condition or a constraint forbids them.
            why = "a combination that is not allowed now" if name == TOGETHER else f"another value of {name}"
            found += f"; {count} had {why} and {'is' if count == 1 else 'are'} left out"
        return f"{found}."

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, the arguments of the class."""
        return {
            "total": self.total,
            "used": self.used,
            "imputed": self.imputed,
            "unfinished": self.unfinished,
            "left_out": dict(self.left_out),
            "values": dict(self.values),
        }


@dataclass(frozen=True, slots=True)
class EditRecord:
    """An edit that made `version` of a study's space.

    `edit` is as the user gave it, and `values` has the exact values of the removed and fixed parameters. `at`: its
    time, as ISO 8601.
    """

    version: int
    edit: Edit
    values: Mapping[str, Scalar]
    trials: EarlierTrials
    actor: str
    at: str
    request_id: str = ""

    @property
    def added(self) -> list[str]:
        """The names of the added parameters."""
        return self.edit.added()

    @property
    def removed(self) -> dict[str, Scalar]:
        """The removed parameters, with the values that they have since."""
        return {name: self.values[name] for name in self.edit.remove}

    @property
    def fixed(self) -> dict[str, Scalar]:
        """The fixed parameters, with their values."""
        return {name: self.values[name] for name in self.edit.fix}

    @property
    def freed(self) -> list[str]:
        """The names of the freed parameters."""
        return list(self.edit.free)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON for storage, from which `from_json` makes an equal record."""
        return {
            "version": self.version,
            "edit": self.edit.to_json(),
            "values": dict(self.values),
            "trials": self.trials.to_json(),
            "actor": self.actor,
            "at": self.at,
            "request_id": self.request_id,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EditRecord:
        """Return the record that `to_json` has stored."""
        return cls(**{**data, "edit": Edit.parse(data["edit"]), "trials": EarlierTrials(**data["trials"])})
