"""The search space: one class for each kind of parameter.

    space = [
        trimtab.Float("learning_rate", 1e-5, 1e-1, log=True, default=1e-3),
        trimtab.Int("threads", 1, 64, factor=2),                      # 1, 2, 4 ... 64
        trimtab.Ordinal("block", [4, 16, 64, 256]),                   # any ordered list
        trimtab.Categorical("allocator", ["glibc", "jemalloc"]),
        trimtab.Int("arenas", 1, 32, when=("allocator", ["jemalloc"])),
        trimtab.Bool("huge_pages", default=False),
    ]

The service checks ranges, grids and conditions when the study is created; only what cannot be sent at all is refused
here. `when` makes a parameter conditional: it is part of a configuration only while the parameter it names has one of
the values given.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from trimtab.errors import InvalidInput

Scalar: TypeAlias = float | int | str | bool
"""A plain value of a parameter."""

Params: TypeAlias = dict[str, Scalar]
"""A configuration: the values of its active parameters by name."""

When: TypeAlias = tuple[str, Sequence[Scalar]] | Mapping[str, Sequence[Scalar]]
"""The condition of a parameter: ("alg", ["a"]) or {"alg": ["a"]}."""


@dataclass(frozen=True)
class Parameter(ABC):
    """What all kinds of parameters have: a name, perhaps a default value, and perhaps a condition."""

    name: str
    default: Scalar | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)

    @abstractmethod
    def cast(self, value: Scalar) -> Scalar:
        """The value in this parameter's own Python type; as it is where it does not fit."""


@dataclass(frozen=True)
class Float(Parameter):
    """A real number from `min` to `max`.

    `log` searches on a logarithmic scale. `step` makes it an additive grid (min, min + step ...), `factor` a
    multiplicative one (min, min * factor ...).
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
class Ordinal(Parameter):
    """One of a list of values, in an order that means something: numbers, texts or both."""

    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _plain_tuple(self.name, self.values))

    def cast(self, value: Scalar) -> Scalar:
        return _listed(self.values, value)


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of a list of values without an order."""

    values: Sequence[Scalar]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _plain_tuple(self.name, self.values))

    def cast(self, value: Scalar) -> Scalar:
        return _listed(self.values, value)


@dataclass(frozen=True)
class Bool(Parameter):
    """On or off."""

    default: bool | None = field(default=None, kw_only=True)

    def cast(self, value: Scalar) -> Scalar:
        return value  # nothing but True and False means a boolean


def condition(parameter: Parameter) -> tuple[str, tuple[Scalar, ...]] | None:
    """The parent and its values that make `parameter` active, out of either form of `when`; None: always active.

    Raises:
        InvalidInput: `when` has neither form.
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
    raise InvalidInput.of(f"{parameter.name}.when", when, 'one parent and its values, as in ("alg", ["a", "b"])')


def cast(space: Sequence[Parameter], values: Mapping[str, Scalar]) -> Params:
    """The values, each in the Python type of its parameter; of an unknown parameter as it is."""
    kinds = {parameter.name: parameter for parameter in space}
    return {name: kinds[name].cast(value) if name in kinds else value for name, value in values.items()}


def _plain_tuple(name: str, values: object) -> tuple[Scalar, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput.of(f"{name}.values", values, "a list of numbers, texts or booleans")
    return tuple(values)


def _listed(values: Sequence[Scalar], value: Scalar) -> Scalar:
    # True == 1 in Python, but not here: a value of the same type goes before an equal one.
    for other in values:
        if type(other) is type(value) and other == value:
            return other
    for other in values:
        if other == value and isinstance(other, bool) == isinstance(value, bool):
            return other
    return value
