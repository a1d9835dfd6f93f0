"""The search space: one class for each kind of parameter.

A space is a list of parameters:

    space = [
        trimtab.Float("learning_rate", 1e-5, 1e-1, log=True, default=1e-3),
        trimtab.Int("threads", 1, 64, factor=2),                      # 1, 2, 4 ... 64
        trimtab.Ordinal("block", [4, 16, 64, 256]),                   # any ordered list
        trimtab.Categorical("allocator", ["glibc", "jemalloc"]),
        trimtab.Int("arenas", 1, 32, when=("allocator", ["jemalloc"])),
        trimtab.Bool("huge_pages", default=False),
    ]

`when` makes a parameter conditional: a configuration contains it only if the named parameter has one of the given
values. The service checks ranges, grids and conditions when it creates the study; this module refuses only values that
cannot be sent.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trimtab.errors import InvalidInput

Scalar: TypeAlias = float | int | str | bool
"""A value of a parameter."""

Params: TypeAlias = dict[str, Any]
"""A configuration: the values of its active parameters by name."""

When: TypeAlias = tuple[str, Sequence[Scalar]] | Mapping[str, Sequence[Scalar]]
"""The condition of a parameter: ("alg", ["a"]) or {"alg": ["a"]}."""


@dataclass(frozen=True)
class Parameter(ABC):
    """A parameter: a name, an optional default value, condition and unit of its values, which is text for people.

    A trial may lack an `optional` parameter although it is active, because the program chooses its parameters while it
    runs: see `Study.replace_params`.
    """

    name: str
    default: Scalar | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)
    optional: bool = field(default=False, kw_only=True)

    @abstractmethod
    def cast(self, value: Scalar) -> Scalar:
        """Return the value in this parameter's Python type, unchanged if it does not fit."""


@dataclass(frozen=True)
class Float(Parameter):
    """A real number from `min` to `max`.

    `log` searches on a logarithmic scale. `step` defines an additive grid (min, min + step, ...), `factor` a
    multiplicative grid (min, min * factor, ...).
    """

    min: float
    max: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    factor: float | None = field(default=None, kw_only=True)
    default: float | None = field(default=None, kw_only=True)

    def cast(self, value: Scalar) -> Scalar:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@dataclass(frozen=True)
class Int(Parameter):
    """A whole number from `min` to `max`; `log`, `step` and `factor` as in `Float`."""

    min: int
    max: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)
    factor: float | None = field(default=None, kw_only=True)
    default: int | None = field(default=None, kw_only=True)

    def cast(self, value: Scalar) -> Scalar:
        return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class _Listed(Parameter):
    """One value of a list."""

    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _plain_tuple(self.name, self.values))

    def cast(self, value: Scalar) -> Scalar:
        return _listed(self.values, value)


@dataclass(frozen=True)
class Ordinal(_Listed):
    """One value of an ordered list of numbers, strings or both."""


@dataclass(frozen=True)
class Categorical(_Listed):
    """One value of a list that has no order."""


@dataclass(frozen=True)
class Bool(Parameter):
    """A boolean: True or False."""

    default: bool | None = field(default=None, kw_only=True)

    def cast(self, value: Scalar) -> Scalar:
        return value  # only True and False are booleans


def condition(parameter: Parameter) -> tuple[str, tuple[Scalar, ...]] | None:
    """Return the parent and the values of it that make `parameter` active; None if it is always active.

    Raises:
        InvalidInput: `when` has neither of its two forms.
    """
    when = parameter.when
    if when is None:
        return None
    pairs = list(when.items()) if isinstance(when, Mapping) else [when]
    match pairs:
        case [(str(parent), str() | bool() | int() | float() as value)]:
            return parent, (value,)
        case [(str(parent), values)] if isinstance(values, Sequence):
            return parent, tuple(values)
    raise InvalidInput.of(f"{parameter.name}.when", when, 'one parent and its values, for example ("alg", ["a", "b"])')


def cast(space: Sequence[Parameter], values: Mapping[str, Scalar]) -> Params:
    """Return each value in the Python type of its parameter; values of unknown parameters stay unchanged."""
    kinds = {parameter.name: parameter for parameter in space}
    return {name: kinds[name].cast(value) if name in kinds else value for name, value in values.items()}


def _plain_tuple(name: str, values: object) -> tuple[Scalar, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput.of(f"{name}.values", values, "a list of numbers, strings or booleans")
    return tuple(values)


def _listed(values: Sequence[Scalar], value: Scalar) -> Scalar:
    # True == 1 in Python but not here, so a value of the same type takes precedence.
    for other in values:
        if type(other) is type(value) and other == value:
            return other
    for other in values:
        if other == value and isinstance(other, bool) == isinstance(value, bool):
            return other
    return value
