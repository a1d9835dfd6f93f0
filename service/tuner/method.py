"""The method of a tuner: the algorithm, the policies and their options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from service.algorithms import registry
from service.algorithms.auto import Choice
from service.core.errors import InvalidInput, JsonValue
from service.core.problem import Problem
from service.core.stability import Stability
from service.policies import noise, pruning, resampling
from service.policies.check import FinalCheck
from service.policies.stopping import StoppingRule

# Algorithms with a posterior, from which `adaptive` computes the value of one more measurement.
_PREDICTING = ("gp", "smbo")
# Other algorithms that learn from results. The designs of experiments measure what they have planned.
_LEARNING = ("botorch", "cmaes", "ga", "nsga2", "sa", "tpe")


@dataclass(frozen=True, kw_only=True)
class LiveRules:
    """How far a candidate of a live study may be from the settings in force: `step` is a share of each range.

    `ratios`: of each metric, the largest ratio to the settings in force that the study's guards allow.
    """

    step: float = 0.15
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """An algorithm and its policies, each by name and with the user's options.

    `resampling` None: if the problem is noisy, "adaptive" for an algorithm with a posterior, "closing" for any other
    one that learns, and otherwise "none". A trial is stopped as soon as one policy of `pruning` stops it. `budget`: the
    number of trials of the search, without the final check; None: no limit. `timed`: whether time or node-hours are
    limited instead. `parallelism`: the number of trials at once, if known. `live`: the rules of a live study.
    `stability`: the study looks for configurations that stay good on all nodes, which decides how often each of them is
    measured and what it is worth.
    """

    algorithm: str = "auto"
    algorithm_options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    resampling: str | None = None
    resampling_options: Mapping[str, object] = field(default_factory=dict)
    estimator: str = "median"
    estimator_options: Mapping[str, object] = field(default_factory=dict)
    pruning: Sequence[tuple[str, Mapping[str, object]]] = ()
    stopping: StoppingRule | None = None
    final_check: FinalCheck | None = None
    budget: int | None = None
    timed: bool = False
    parallelism: int = 1
    live: LiveRules | None = None
    stability: Stability | None = None

    def completed(self, problem: Problem) -> Method:
        """Return the method with exact values of all options, and with defaults for options that are not given.

        Raises InvalidInput: `algorithm...`, `resampling...`, `estimator...`, `pruning[0]...` for an unknown name, an
        unknown option, a value out of range or a choice that the problem does not allow, and `stopping` for a rule that
        needs a model if the algorithm has none. With `stability` also `stability` for a problem that cannot have it.
        """
        options = registry.validate(self.algorithm, self.algorithm_options, problem)
        predicts = self.choice(problem).name in _PREDICTING
        if self.stopping is not None and self.stopping.needs_prediction and not predicts:
            allowed = f"rules that need no model, or one of the algorithms with a model: {', '.join(_PREDICTING)}"
            raise InvalidInput("stopping", json.dumps(self.stopping.to_json()), allowed)
        resampled = self.resampling
        if self.stability is not None:
            self._expect_stable(problem)
            resampled = "none"
        if resampled is None:
            learns = "adaptive" if predicts else "closing" if self.choice(problem).name in _LEARNING else "none"
            resampled = learns if problem.noisy and len(problem.objectives) == 1 else "none"
        return replace(
            self,
            algorithm_options=options,
            resampling=resampled,
            resampling_options=resampling.validate(resampled, self.resampling_options, problem, "resampling"),
            estimator_options=noise.validate(self.estimator, self.estimator_options, "estimator"),
            pruning=tuple(
                (name, pruning.validate(name, given, problem, f"pruning[{index}]"))
                for index, (name, given) in enumerate(self.pruning)
            ),
        )

    def choice(self, problem: Problem) -> Choice:
        """Return the algorithm and its options, which for `auto` depend on problem, budget and parallelism."""
        return registry.resolve(
            self.algorithm,
            problem,
            self.algorithm_options,
            budget=self.budget,
            parallelism=self.parallelism,
            timed=self.timed,
        )

    def chosen_options(self, problem: Problem) -> Mapping[str, JsonValue]:
        """Return all options of the algorithm, or of the one that `auto` chose."""
        return self.choice(problem).options

    def start(self, problem: Problem) -> int:
        """Return the number of trials of the start design, before the algorithm learns; 0 without a start design."""
        options = self.chosen_options(problem)
        given = options.get("initial", options.get("start", 0))
        return given if isinstance(given, int) else min(2 * (len(problem.space.parameters) + 1), 6)

    def _expect_stable(self, problem: Problem) -> None:
        """Raise InvalidInput for a problem or a policy that does not go with `stability`."""
        assert self.stability is not None
        given = self.stability.to_json()
        if len(problem.objectives) > 1:
            raise InvalidInput("stability", given, "null for a study with several objectives")
        if problem.context:
            raise InvalidInput("stability", given, "null for a study with a context")
        if not problem.noisy:
            raise InvalidInput("stability", given, "null for a study without noise, or noisy: true")
        if self.resampling not in (None, "none"):
            allowed = "none, because stability decides how often a configuration is measured"
            raise InvalidInput("resampling.name", self.resampling, allowed)
        if self.estimator != "median" or self.estimator_options.get("neighbours"):
            allowed = "median, because stability.value decides what a configuration is worth"
            raise InvalidInput("estimator.name", self.estimator, allowed)
