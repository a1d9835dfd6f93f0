"""The description of an algorithm, which callers read before the import of its implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from service.algorithms.base import Cost
from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option
from service.core.problem import Problem


def allow(problem: Problem, options: Mapping[str, JsonValue]) -> None:
    """Allow any problem and options."""


@dataclass(frozen=True)
class Entry:
    """An algorithm: `implementation` is `module:Class`, which only `registry.create` imports.

    The cost and the use of history must be those of the class; for `auto` they are the maximum over the algorithms that
    it may choose. `check` raises InvalidInput if complete options do not suit a problem.
    """

    name: str
    doc: str
    cost: Cost
    uses_history: bool
    implementation: str
    options: tuple[Option, ...] = ()
    most_objectives: int | None = None
    opening: str = ""
    """The cheap algorithm whose suggestions a costly one begins with, for as long as its start design lasts."""
    check: Callable[[Problem, Mapping[str, JsonValue]], None] = allow
    needs: str = ""
    """A module that only an extra of the service installs and that the implementation imports."""
    extra: str = ""
    """That extra."""

    @property
    def is_installed(self) -> bool:
        """Return whether the implementation can be imported. Nothing is imported to find out."""
        return not self.needs or find_spec(self.needs) is not None

    @property
    def remedy(self) -> str:
        """Return the command that installs what the implementation needs."""
        return f"pip install 'trimtab-service[{self.extra}]'"

    def check_installed(self) -> None:
        """Raise InvalidInput (field `algorithm.name`) if the implementation cannot be imported."""
        if not self.is_installed:
            fault = f"needs {self.needs}, which is not installed"
            raise InvalidInput(
                "algorithm.name", self.name, f"another algorithm, or install it: {self.remedy}", problem=fault
            )
