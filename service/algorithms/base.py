"""The contract of all algorithms, which service/testing/algorithms.py checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from service.core.errors import JsonValue
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.prospects import Prospect
from service.core.sensitivity import Sensitivities
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

NOTHING_FIXED: Mapping[str, Scalar] = MappingProxyType({})


class Cost(StrEnum):
    """A CHEAP algorithm takes milliseconds and runs within a request. A COSTLY one runs in a worker without a lock."""

    CHEAP = "CHEAP"
    COSTLY = "COSTLY"


@dataclass(frozen=True)
class Batch:
    """The answer to an ask.

    The next ask takes `cursor`. If `exhausted`, there are fewer configurations than requested, because the space (or
    its part with the fixed values) has no more.
    """

    configurations: tuple[Configuration, ...]
    cursor: int
    exhausted: bool


class Algorithm(ABC):
    """An algorithm that suggests configurations for one study.

    An instance is not thread-safe; each caller has its own. Every suggestion is a valid, feasible configuration with
    the fixed values. The same seed, options, history, pending trials and cursor give the same suggestions in any
    process.
    """

    cost: ClassVar[Cost]
    uses_history: ClassVar[bool]
    """False: in a noisy study callers may leave out `update` and `pending`, because only seed and cursor count."""

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        """`options` are complete and valid, as `registry.validate` makes them."""
        self.problem = problem
        self.seed = seed
        self.options = options

    def update(self, finished: Sequence[TrialRecord]) -> None:  # noqa: B027 - an algorithm may have nothing to learn
        """Learn from finished trials (COMPLETED, INFEASIBLE, FAILED, PRUNED). Each trial is passed exactly once."""

    @abstractmethod
    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        """Return `count` suggestions, fewer only if the space is exhausted. The observable state does not change.

        Args:
            cursor: 0 at first, then the cursor of the previous batch, even after a change of process.
            pending: trials that are not finished: REQUESTED and ACTIVE ones.
            fixed: values that every suggestion must have; these parameters are active in every suggestion.

        Raises:
            InvalidInput: see `algorithms.feasible`.
        """

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        """Return predictions of the first objective. The observable state does not change.

        The result is None without a model: in most algorithms, with several objectives, or before any measurement.
        """
        return None

    def predictions(self, configurations: Sequence[Configuration]) -> Sequence[Prediction]:
        """Return predictions of each objective. The observable state does not change.

        The result is empty without a model: in most algorithms, or before any measurement.
        """
        found = self.predict(configurations)
        return () if found is None else (found,)

    def knowledge(self, configuration: Configuration, others: Sequence[Configuration]) -> Sequence[float]:
        """Return how much a run of each of the others would tell about a configuration. The state does not change.

        It is the share of the remaining variance of the configuration's value that the run removes, from 0 to 1. The
        result is empty without a model.
        """
        return ()

    def chances(self, configurations: Sequence[Configuration]) -> Sequence[float]:
        """Return the probability that each configuration works and keeps the outcome constraints, as far as known."""
        return [1.0] * len(configurations)

    def sensitivities(self) -> Sensitivities:
        """Return each parameter's share of each objective's variance. The observable state does not change.

        The result is empty without a model: in most algorithms, or before any measurement.
        """
        return {}

    def prospects(self) -> Sequence[Prospect]:
        """Return the probabilities of gains over the default. The observable state does not change.

        The result is empty without a model: in most algorithms, with several objectives, or before the default and
        something else have been measured.
        """
        return ()

    def dump(self) -> JsonValue:
        """Return state that is costly to compute again, for storage. The history is not included.

        The caller passes the history to a new instance with `update`.
        """
        return None

    def load(self, state: JsonValue) -> None:  # noqa: B027 - nor anything to remember
        """Restore the result of `dump`, possibly from another process or version, or with a shorter history.

        This only saves time; an unusable state is ignored.
        """
