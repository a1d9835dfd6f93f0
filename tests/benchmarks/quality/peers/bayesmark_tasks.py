# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["bayesmark==0.0.8", "numpy<1.24", "scikit-learn<1.2"]
# ///
"""Bayesmark's tasks: hyper-parameters of scikit-learn's models on its data sets, judged by cross-validation.

Newer releases of scikit-learn lack one of the data sets. A request names the `task`, a list of model, data and metric,
and is answered by the task's parameters as in `line`. With a `configuration` and a `seed` it is answered by the loss of
the configuration.
"""

import functools
import math
import warnings
from typing import Any

import numpy as np
from bayesmark.sklearn_funcs import SklearnModel
from line import answer_requests

# A loss that cannot be computed counts as this, which is worse than all others.
_FAILED = 1e6


def described(name: str, one: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter as in `line`. One on the logit scale becomes a number on the unbounded scale."""
    if one["type"] == "bool":
        return {"name": name, "kind": "bool"}
    low, high = one["range"]
    if one["space"] == "logit":
        low, high = math.log(low / (1.0 - low)), math.log(high / (1.0 - high))
    kind = "int" if one["type"] == "int" else "float"
    return {"name": name, "kind": kind, "min": low, "max": high, "log": one["space"] == "log"}


@functools.cache
def task_of(*names: str) -> Any:
    """Return Bayesmark's task for a model, a data set and a metric."""
    return SklearnModel(*names)


def answer(request: dict[str, Any]) -> Any:
    """Return the parameters of a task, or the loss of a configuration."""
    task = task_of(*request["task"])
    parameters = task.get_api_config()
    if "configuration" not in request:
        return [described(name, one) for name, one in parameters.items()]
    np.random.seed(request["seed"])
    given = {
        name: 1.0 / (1.0 + math.exp(-value)) if parameters[name].get("space") == "logit" else value
        for name, value in request["configuration"].items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loss, _ = task.evaluate(given)
        except (AssertionError, ValueError, FloatingPointError):
            return _FAILED
    return min(float(loss), _FAILED)


if __name__ == "__main__":
    answer_requests(answer)
