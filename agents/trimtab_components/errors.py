"""The errors in component files, and in values for their parameters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """An error in a component file: its position, and what is allowed there. Lines and columns count from 1. `length`
    is the number of characters at fault if they are in one line, else 0."""

    file: str
    line: int
    field: str
    message: str
    column: int = 1
    length: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.message}"


class UnsuitableValueError(Exception):
    """The component file does not allow a value. The trial is infeasible, because its configuration causes this.
    `str(error)` is a sentence that an administrator can act on."""

    code = "unsuitable_value"


class NotInComponentError(Exception):
    """A component, application, parameter or metric of this name does not exist here. The configuration is not at
    fault. `str(error)` is a sentence that an administrator can act on."""

    code = "not_in_component"
