"""The client for asyncio. It runs the calls of `trimtab.Client` in threads, so that the event loop never waits.

    import trimtab.aio

    async with trimtab.aio.Client() as client:
        study = await client.create_study("my-study", space=[...], objectives=[trimtab.Minimize("seconds")])
        await study.optimize(measure, n_trials=50, parallel=4)      # async def measure(params): ...
        print((await study.best_trial()).params)

Every method of `Client` and `Study` that calls the service is a coroutine here, with the same arguments. Properties
that call the service are coroutines without arguments, and iterators are asynchronous ones.

A cancelled `ask` gives its trials back: they are told as FAILED once they arrive. Other calls that are cancelled take
effect.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from trimtab import client as sync
from trimtab import study as sync_study
from trimtab.errors import Conflict, Infeasible, InvalidInput
from trimtab.space import Params
from trimtab.spec import StudyState
from trimtab.trial import Metrics, Trial

__all__ = ["Client", "Study"]

P = ParamSpec("P")
T = TypeVar("T")

CANCELLED = "the task that has asked for it was cancelled"
_PAUSED_SECONDS = 2.0
# Properties that call the service. The others return what the object knows.
_CALLING = frozenset({"recommendation", "best_trial", "best_trials", "verdict", "pareto_verdict"})


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(call, *args, **kwargs)


class Study:
    """A study whose calls are coroutines. `study.sync` is the same study for threads."""

    def __init__(self, study: sync_study.Study) -> None:
        self.sync = study

    def __repr__(self) -> str:
        return repr(self.sync).replace("trimtab.Study", "trimtab.aio.Study")

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of `trimtab.Study`: a method becomes a coroutine function."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _CALLING:
            return partial(_in_thread, partial(getattr, self.sync, name))
        return _adapted(getattr(self.sync, name))

    async def ask(self, n: int = 1, **given: Any) -> list[Trial]:
        """Return the next trials, as `trimtab.Study.ask`. If the task is cancelled, they are told as FAILED."""
        asked = asyncio.ensure_future(_in_thread(self.sync.ask, n, **given))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(self._give_back)
            raise

    def _give_back(self, asked: "asyncio.Future[list[Trial]]") -> None:
        if asked.cancelled() or asked.exception() is not None:
            return
        loop = asyncio.get_running_loop()
        for trial in asked.result():
            loop.run_in_executor(None, partial(self.sync.tell, trial, failed=CANCELLED))

    async def watch(self, timeout: float | None = None) -> AsyncIterator[sync_study.Change]:
        """Yield the study with all its trials, then every change, as `trimtab.Study.watch`."""
        async for change in _each(self.sync.watch(timeout)):
            yield change

    async def optimize(
        self,
        fn: Callable[[Params], Awaitable[Metrics]],
        n_trials: int | None = None,
        *,
        parallel: int = 1,
        fixed: Mapping[str, object] | None = None,
    ) -> None:
        """Measure trials with a coroutine function until the budget or `n_trials` is used up.

        `fn` runs `parallel` times at once in the event loop. Its results and exceptions are those of
        `trimtab.Study.optimize`, except that the first exception ends the run, after the running trials have finished.
        A cancelled run tells its open trials as FAILED.
        """
        if parallel < 1:
            raise InvalidInput.of("parallel", parallel, "a whole number of at least 1")
        left = n_trials
        async with asyncio.TaskGroup() as group:

            async def work() -> None:
                nonlocal left
                while left is None or left > 0:
                    left = None if left is None else left - 1
                    trial = await self._next(fixed)
                    if trial is None:
                        return
                    await self._measure(fn, trial)

            for _ in range(parallel):
                group.create_task(work())

    async def _next(self, fixed: Mapping[str, object] | None) -> Trial | None:
        """Return the next trial; None at the end of the search. Wait while the study is paused."""
        while True:
            try:
                found = await self.ask(1, fixed=fixed, schedule_context=True)
                return found[0] if found else None
            except Conflict as conflict:
                if conflict.code in ("budget_exhausted", "results_awaited"):
                    return None
                state = (await self.refresh()).state
                if state.finished:
                    return None
                if state is not StudyState.PAUSED:
                    raise
                await asyncio.sleep(_PAUSED_SECONDS)

    async def _measure(self, fn: Callable[[Params], Awaitable[Metrics]], trial: Trial) -> None:
        try:
            result: dict[str, Any] = {"metrics": await fn(dict(trial.params))}
        except Infeasible as reason:
            result = {"infeasible": str(reason) or "infeasible"}
        except BaseException as error:
            why = CANCELLED if isinstance(error, asyncio.CancelledError) else f"{type(error).__name__}: {error}"
            await asyncio.shield(_in_thread(partial(self.sync.tell, trial, failed=why[:2000])))
            raise
        # A cancelled task has measured the trial all the same.
        await asyncio.shield(_in_thread(partial(self.sync.tell, trial, **result)))


class Client:
    """A connection whose calls are coroutines. The arguments are those of `trimtab.Client`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sync = sync.Client(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of `trimtab.Client`: a method becomes a coroutine function."""
        if name.startswith("_"):
            raise AttributeError(name)
        return _adapted(getattr(self.sync, name))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_thread(self.sync.close)


def _adapted(found: Any) -> Any:
    """Return a method as a coroutine function, and any other attribute as it is."""
    if not inspect.ismethod(found):
        return found

    async def call(*args: Any, **kwargs: Any) -> Any:
        result = await _in_thread(found, *args, **kwargs)
        if isinstance(result, Iterator):
            return await _in_thread(list, result)
        if isinstance(result, list):
            return [_wrapped(one) for one in result]
        return _wrapped(result)

    return call


def _wrapped(result: Any) -> Any:
    return Study(result) if isinstance(result, sync_study.Study) else result


async def _each(iterator: Iterator[T]) -> AsyncIterator[T]:
    """Yield the items of an iterator that waits for them."""
    end = object()
    while True:
        found: Any = await _in_thread(next, iterator, end)
        if found is end:
            return
        yield found
