"""The contract that every algorithm keeps; tests/contract/test_algorithms.py holds them to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.sensitivity import Sensitivities
from service.core.space import Configuration, Scalar, Space
from service.core.trial import TrialRecord

NOTHING_FIXED: Mapping[str, Scalar] = MappingProxyType({})


class Cost(StrEnum):
    """CHEAP: milliseconds, called within a request. COSTLY: called by a worker that holds no lock."""

    CHEAP = "CHEAP"
    COSTLY = "COSTLY"


@dataclass(frozen=True)
class Batch:
    """An answer to an ask.

    `cursor` is what to pass to the next ask. `exhausted`: fewer configurations than asked for, because the space (the
    part of it with the fixed values) holds no more.
    """

    configurations: tuple[Configuration, ...]
    cursor: int
    exhausted: bool


class Algorithm(ABC):
    """An algorithm that suggests configurations for one study.

    Not thread-safe; it is the caller's own. Every suggestion is a valid, feasible configuration with the fixed
    values. The same seed, options, history, pending trials and cursor give the same suggestions, in any process.
    """

    cost: ClassVar[Cost]
    uses_history: ClassVar[bool]
    """False: `update` and `pending` may be left out, for it depends on its seed and the cursor alone."""

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        """`options` are complete and valid, as `registry.validate` makes them."""
        self.problem = problem
        self.seed = seed
        self.options = options

    def update(self, finished: Sequence[TrialRecord]) -> None:  # noqa: B027 - an algorithm may have nothing to learn
        """Learn from trials that finished (COMPLETED, INFEASIBLE, FAILED, PRUNED), each passed exactly once."""

    @abstractmethod
    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        """Suggest `count` configurations, fewer only when the space is exhausted. Changes nothing that can be observed.

        Args:
            cursor: 0 at first, then that of the batch before, however often the process changed.
            pending: trials that are not finished: REQUESTED and ACTIVE ones.
            fixed: values that every suggestion must have; the parameters are active in all of them.

        Raises:
            InvalidInput: `fixed.<name>` has a value that no configuration can have; code `no_feasible_configuration`
                where the constraints seem to leave nothing.
        """

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        """What it expects of the first objective. Changes nothing that can be observed.

        None where it has no model: most algorithms, several objectives, nothing measured yet.
        """
        return None

    def sensitivities(self) -> Sensitivities:
        """What its model says each parameter is answerable for, by objective. Changes nothing that can be observed.

        Empty where it has no model: most algorithms, nothing measured yet.
        """
        return {}

    def dump(self) -> JsonValue:
        """What would be costly to find again, to be stored. The history is no part of it: the caller feeds it anew."""
        return None

    def load(self, state: JsonValue) -> None:  # noqa: B027 - nor anything to remember
        """Take over what `dump` gave, perhaps in another process, by another version, with a shorter history.

        It only saves time: a state that is of no use is ignored.
        """


def no_feasible(space: Space, fixed: Mapping[str, Scalar], looked: str) -> InvalidInput:
    """The error for a space in which nothing feasible was found; `looked` says where."""
    constraints = "; ".join(constraint.text for constraint in space.constraints)
    if fixed:
        field, value = "fixed", ", ".join(f"{name} = {one!r}" for name, one in fixed.items())
    else:
        field, value = "constraints", constraints
    allowed = f"what some configuration satisfies; {looked} broke the constraints ({shorten(constraints, 300)})"
    return InvalidInput(field, value, allowed, code="no_feasible_configuration")
