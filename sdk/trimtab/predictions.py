"""Predictions of a model that somebody has written: the configuration that it predicts to be best is measured early.

The model is a Python file with a function `predict(configuration, context)`. It runs in the process of the caller: the
service receives a configuration, and neither the code nor its predictions. A model may be wrong by a scale and an
offset, because only the order of its predictions counts.
"""

import importlib.util
import itertools
import math
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trimtab.errors import InvalidInput
from trimtab.objective import Maximize
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Params, Scalar, condition

if TYPE_CHECKING:
    from trimtab.spec import StudySpec
    from trimtab.study import Study
    from trimtab.trial import Trial

Predict: TypeAlias = Callable[[Params, Mapping[str, str]], float | None]
"""Returns the value of the objective that it expects, or None where it knows nothing. The second argument has the
`component` and the `application`."""

POINTS = 256
# The service refuses configurations that break a constraint of the space.
_MOST_REFUSED = 100


def load(path: Path) -> Predict:
    """Return the function `predict` of a Python file.

    Raises:
        InvalidInput: the file cannot be executed or has no such function.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidInput.of("model", str(path), "a Python file, such as model.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput("model_failed", f"{path} cannot be executed: {type(error).__name__}: {error}.") from error
    predict = getattr(module, "predict", None)
    if not callable(predict):
        raise InvalidInput.of("model", str(path), "a file with a function predict(configuration, context)")
    return predict  # type: ignore[no-any-return]  # A call checks the result.


def check(spec: "StudySpec") -> None:
    """Raise InvalidInput (`model`) for a study that cannot use predictions."""
    if len(spec.objectives) != 1 or spec.context:
        raise InvalidInput.of("model", None, "no model for a study with several objectives or with a context")


def enqueue_best(study: "Study", predict: Predict, *, points: int = POINTS) -> "Trial | None":
    """Have the configuration with the best prediction measured, and return its trial.

    The model is computed at up to `points` configurations: all of a small space, and otherwise drawn ones, the same
    each time. The result is None if the model predicts nothing. A second call for the same study returns the same
    trial.

    Raises:
        InvalidInput: the model fails, or the study cannot use predictions.
        Conflict: as `Study.enqueue` does.
    """
    check(study.spec)
    request_id = uuid.uuid5(uuid.NAMESPACE_URL, f"model/{study.name}").hex
    refused: InvalidInput | None = None
    for params in ranked(study.spec, predict, points=points)[:_MOST_REFUSED]:
        try:
            return study.enqueue(params, request_id=request_id)[0]
        except InvalidInput as error:
            refused = error
    if refused is not None:
        raise refused
    return None


def ranked(spec: "StudySpec", predict: Predict, *, points: int = POINTS) -> list[Params]:
    """Return the configurations with a prediction, the best one first.

    Raises:
        InvalidInput: `predict` raises an error or returns no finite number (`model_failed`).
    """
    run = spec.execution
    context = {} if run is None else {"component": run.component, "application": run.application}
    sign = -1.0 if isinstance(spec.objectives[0], Maximize) else 1.0
    found: list[tuple[float, Params]] = []
    for params in itertools.islice(_configurations(spec.space, points), points):
        try:
            value = predict(dict(params), context)
            number = None if value is None else float(value)
        except Exception as error:
            message = f"predict({params}) failed: {type(error).__name__}: {error}. Repair the model."
            raise InvalidInput("model_failed", message) from error
        if number is None:
            continue
        if not math.isfinite(number):
            message = f"predict({params}) returned {number}. Return a finite number, or None where nothing is known."
            raise InvalidInput("model_failed", message)
        found.append((sign * number, params))
    return [params for _, params in sorted(found, key=lambda one: one[0])]


def _configurations(space: Sequence[Parameter], points: int) -> Iterator[Params]:
    """Yield all configurations if there are at most `points` combinations of values, and otherwise drawn ones."""
    values = [_values(one, points) for one in space]
    if all(values) and math.prod(map(len, values)) <= points:
        combined = (dict(zip((one.name for one in space), each, strict=True)) for each in itertools.product(*values))
    else:
        draw = random.Random(0)  # nosec B311  # The draws are a sample, not a secret.
        combined = (
            {one.name: draw.choice(own) if own else _drawn(one, draw) for one, own in zip(space, values, strict=True)}
            for _ in range(points)
        )
    seen: set[str] = set()
    for params in combined:
        active = {one.name: params[one.name] for one in space if _is_active(one, params, space)}
        if (key := repr(active)) not in seen:
            seen.add(key)
            yield active


def _is_active(parameter: Parameter, params: Params, space: Sequence[Parameter]) -> bool:
    found = condition(parameter)
    if found is None:
        return True
    name, wanted = found
    parent = next(one for one in space if one.name == name)
    return params[name] in wanted and _is_active(parent, params, space)


def _values(parameter: Parameter, most: int) -> Sequence[Scalar]:
    """Return all values of a parameter; none if there are more than `most`."""
    match parameter:
        case Bool():
            return (False, True)
        case Ordinal() | Categorical():
            return parameter.values
        case Int() | Float() if parameter.factor is not None:
            count = int(math.log(parameter.max / parameter.min) / math.log(parameter.factor) + 1e-9) + 1
            grid: list[float] = [parameter.min * parameter.factor**place for place in range(min(count, most + 1))]
        case Int() | Float() if parameter.step is not None or isinstance(parameter, Int):
            step = parameter.step or 1
            count = int((parameter.max - parameter.min) / step + 1e-9) + 1
            grid = [parameter.min + step * place for place in range(min(count, most + 1))]
        case _:
            return ()
    if len(grid) > most:
        return ()
    return [round(one) for one in grid] if isinstance(parameter, Int) else grid


def _drawn(parameter: Parameter, draw: random.Random) -> Scalar:
    """Return a drawn value of a number, by its logarithm where the parameter has a logarithmic scale."""
    assert isinstance(parameter, Int | Float)
    low, high = float(parameter.min), float(parameter.max)
    found = math.exp(draw.uniform(math.log(low), math.log(high))) if parameter.log else draw.uniform(low, high)
    found = min(max(found, low), high)
    if parameter.step is not None:
        found = low + parameter.step * round((found - low) / parameter.step)
    elif parameter.factor is not None:
        found = low * parameter.factor ** round(math.log(found / low) / math.log(parameter.factor))
    return round(found) if isinstance(parameter, Int) else found
