"""The options of `botorch`: the names of BoTorch's classes and functions, without an import of BoTorch."""

from __future__ import annotations

from collections.abc import Mapping

from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option
from service.core.parameters import CategoricalParameter, FloatParameter, IntParameter, OrdinalParameter
from service.core.problem import Problem

MIXED = "MixedSingleTaskGP"
MODELS = (
    "SingleTaskGP",
    MIXED,
    "AdditiveMapSaasSingleTaskGP",
    "EnsembleMapSaasSingleTaskGP",
    "RobustRelevancePursuitSingleTaskGP",
)
BOUND = "qUpperConfidenceBound"
FOR_ONE_OBJECTIVE = ("qLogNoisyExpectedImprovement", "qLogExpectedImprovement", BOUND)
FOR_SEVERAL_OBJECTIVES = ("qLogNoisyExpectedHypervolumeImprovement", "qLogNParEGO")
OPTIMIZERS = ("optimize_acqf", "optimize_acqf_mixed_alternating", "optimize_acqf_discrete")
OUTCOME_TRANSFORMS = ("Standardize", "Log", "none")
WARP = "Warp"
INPUT_TRANSFORMS = ("none", WARP)
# BoTorch cannot fit the warp together with the other models.
WARPED = ("SingleTaskGP", MIXED, "AdditiveMapSaasSingleTaskGP")
# The cost of the hypervolume grows fast with the objectives. With more than this, the default uses weightings.
_MOST_OBJECTIVES = 4

OPTIONS = (
    Option(
        name="model",
        type="text",
        default="SingleTaskGP",
        doc="BoTorch's model of each objective and each outcome constraint.",
        choices=MODELS,
    ),
    Option(
        name="acquisition",
        type="text",
        default=None,
        doc="BoTorch's acquisition function. The default is qLogNoisyExpectedImprovement; without noise "
        "qLogExpectedImprovement, for several objectives qLogNoisyExpectedHypervolumeImprovement, and for more than "
        "four qLogNParEGO.",
        choices=(*FOR_ONE_OBJECTIVE, *FOR_SEVERAL_OBJECTIVES),
    ),
    Option(
        name="optimizer",
        type="text",
        default=None,
        doc="BoTorch's optimiser of the acquisition function. The default is optimize_acqf for continuous parameters, "
        "optimize_acqf_discrete for a small grid, and otherwise optimize_acqf_mixed_alternating.",
        choices=OPTIMIZERS,
    ),
    Option(
        name="outcome_transform",
        type="text",
        default="Standardize",
        doc="Transformation of an objective's values before the model. Log also standardises; it has no effect on an "
        "objective with a value that is not positive.",
        choices=OUTCOME_TRANSFORMS,
    ),
    Option(
        name="input_transform",
        type="text",
        default="none",
        doc="Transformation of the parameters before the model. Warp learns a monotone transformation of each numeric "
        "parameter together with the model.",
        choices=INPUT_TRANSFORMS,
    ),
    Option(
        name="beta",
        type="float",
        default=4.0,
        doc="Weight of the variance in qUpperConfidenceBound: the square of the number of standard deviations.",
        min=0,
        max=1000,
    ),
    Option(
        name="mc_samples",
        type="int",
        default=128,
        doc="Number of samples of the posterior in the acquisition function.",
        min=1,
        max=4096,
    ),
    Option(
        name="num_restarts",
        type="int",
        default=4,
        doc="Number of starting points from which the optimiser climbs.",
        min=1,
        max=100,
    ),
    Option(
        name="raw_samples",
        type="int",
        default=256,
        doc="Number of configurations that are compared to find the starting points.",
        min=1,
        max=8192,
    ),
)


def check(problem: Problem, options: Mapping[str, JsonValue]) -> None:
    """Raise InvalidInput (field `algorithm.options.<name>`) if the problem does not allow an option."""
    acquisition = options["acquisition"]
    able = FOR_ONE_OBJECTIVE if len(problem.objectives) == 1 else FOR_SEVERAL_OBJECTIVES
    if acquisition is not None and acquisition not in able:
        number = "one objective" if len(problem.objectives) == 1 else f"{len(problem.objectives)} objectives"
        allowed = f"one of the functions for {number}: {', '.join(able)}"
        raise InvalidInput("algorithm.options.acquisition", acquisition, allowed)
    if acquisition == BOUND and problem.outcome_constraints:
        allowed = f"one of {', '.join(one for one in able if one != BOUND)}"
        reason = "cannot handle outcome constraints"
        raise InvalidInput("algorithm.options.acquisition", acquisition, allowed, problem=reason)
    if options["input_transform"] == WARP and options["model"] not in WARPED:
        allowed = f"one of {', '.join(WARPED)}"
        raise InvalidInput("algorithm.options.model", options["model"], allowed, problem="cannot learn a Warp")
    if options["input_transform"] == WARP and not any(
        isinstance(one, FloatParameter | IntParameter | OrdinalParameter) and one.size() != 1
        for one in problem.space.parameters
    ):
        raise InvalidInput("algorithm.options.input_transform", WARP, "none", problem="needs a numeric parameter")
    if options["model"] == MIXED and not any(isinstance(one, CategoricalParameter) for one in problem.space.parameters):
        allowed = f"one of {', '.join(one for one in MODELS if one != MIXED)}"
        reason = "needs a categorical parameter"
        raise InvalidInput("algorithm.options.model", MIXED, allowed, problem=reason)


def acquisition_for(problem: Problem, options: Mapping[str, JsonValue]) -> str:
    """Return the name of the acquisition function: the chosen one, or the default for the problem."""
    chosen = options["acquisition"]
    if chosen is not None:
        return str(chosen)
    if len(problem.objectives) > 1:
        return FOR_SEVERAL_OBJECTIVES[len(problem.objectives) > _MOST_OBJECTIVES]
    return FOR_ONE_OBJECTIVE[not problem.noisy]
