"""A function to measure that takes further arguments.

    def measure(params: trimtab.Params, data: list[str], *, repeats: int) -> float: ...

    study.optimize(trimtab.with_arguments(measure, ["a.csv", "b.csv"], repeats=3), n_trials=50)

Type checkers compare the further arguments with those of the function. `functools.partial` would put the first
positional argument in the place of `params`.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

from trimtab.space import Params

P = ParamSpec("P")
Result = TypeVar("Result")


def with_arguments(
    fn: Callable[Concatenate[Params, P], Result], /, *args: P.args, **kwargs: P.kwargs
) -> Callable[[Params], Result]:
    """Return the function of the parameters alone that calls `fn(params, *args, **kwargs)`.

    `Study.optimize` and, with a coroutine function, `trimtab.aio.Study.optimize` take it. It can be sent to another
    process if `fn` and the arguments can.
    """
    return _WithArguments(fn, *args, **kwargs)


class _WithArguments(Generic[P, Result]):
    def __init__(self, fn: Callable[Concatenate[Params, P], Result], *args: P.args, **kwargs: P.kwargs) -> None:
        self._fn, self._args, self._kwargs = fn, args, kwargs
        update_wrapper(self, fn, updated=())

    def __call__(self, params: Params) -> Result:
        return self._fn(params, *self._args, **self._kwargs)
