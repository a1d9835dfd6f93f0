"""Optuna's distributions, values, objectives and constraints in the terms of a study, and back."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection

from trimtab._internal.messages.values import LARGEST_METRIC, is_measurement
from trimtab.integrations.foreign_names import metric_name, parameter_name
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.space import Bool, Categorical, Float, Int, Parameter, Scalar

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def to_parameter(name: str, distribution: BaseDistribution) -> Parameter:
    """Return the parameter of a distribution, without a default."""
    own = parameter_name(name)
    if isinstance(distribution, FloatDistribution):
        return Float(own, distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        step = None if distribution.log or distribution.single() else distribution.step
        return Int(own, distribution.low, distribution.high, log=distribution.log, step=step)
    assert isinstance(distribution, CategoricalDistribution)
    codes = _codes(distribution)
    return Bool(own) if set(map(repr, codes)) == {"True", "False"} else Categorical(own, codes)


def encode(distribution: BaseDistribution, value: Any) -> Scalar:
    """Return the value of a parameter as the study has it."""
    if isinstance(distribution, CategoricalDistribution):
        return _codes(distribution)[int(distribution.to_internal_repr(value))]
    found: Scalar = value
    return found


def decode(distribution: BaseDistribution, value: Scalar) -> Any:
    """Return the value of a study's parameter as Optuna has it. Raises ValueError: it is none of the choices."""
    if not isinstance(distribution, CategoricalDistribution):
        return value
    return distribution.choices[[repr(code) for code in _codes(distribution)].index(repr(value))]


def _codes(distribution: CategoricalDistribution) -> list[Scalar]:
    """Return the choices as the study has them: themselves if it can hold all of them, or else texts."""
    choices = list(distribution.choices)
    plain = all(isinstance(one, str | bool | int) or (isinstance(one, float) and math.isfinite(one)) for one in choices)
    # 1, 1.0 and True are one value for Python, and so for a list without repetitions.
    if plain and len(set(choices)) == len(choices):
        return [one for one in choices if isinstance(one, str | bool | int | float)]
    texts = [str(one) for one in choices]
    return list(texts) if len(set(texts)) == len(texts) else [f"{i}: {text}" for i, text in enumerate(texts)]


def objectives(study: "Study") -> list[Objective]:
    """Return the objectives of an Optuna study. Without names of metrics they are value, or value_0, value_1, ..."""
    count = len(study.directions)
    names = study.metric_names or (["value"] if count == 1 else [f"value_{i}" for i in range(count)])
    return [
        (Maximize if direction is StudyDirection.MAXIMIZE else Minimize)(metric_name(name))
        for name, direction in zip(names, study.directions, strict=True)
    ]


def constraints(trial: "FrozenTrial") -> dict[str, float]:
    """Return the metrics of a trial's constraints. A constraint is met if its metric is 0 or less."""
    return {
        metric_name(f"constraint_{name}"): max(-LARGEST_METRIC, min(float(value), LARGEST_METRIC))
        for name, value in trial.constraints.items()
    }


def conditions(names: Iterable[str]) -> list[str]:
    """Return the outcome constraints of a study whose constraints have these metrics."""
    return [f"`{name}` <= 0" for name in names]


def constrained(conditions: Iterable[str]) -> list[str]:
    """Return the metrics of a study's outcome constraints."""
    return [text.rpartition(" <= ")[0].strip("`") for text in conditions]


def measured(values: Mapping[str, float]) -> bool:
    """Return whether the service takes all values as measurements."""
    return all(map(is_measurement, values.values()))
