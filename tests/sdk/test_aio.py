"""trimtab.aio against a real service."""

import asyncio

import pytest

import trimtab
from tests.factories.service import EmbeddedService
from trimtab import aio

SPACE = [trimtab.Float("x", 0, 1)]


async def create(client: aio.Client, name: str) -> aio.Study:
    found = await client.create_study(name, SPACE, [trimtab.Minimize("v")], algorithm="random", noisy=False)
    assert isinstance(found, aio.Study)
    return found


def test_calls_are_coroutines(embedded_service: EmbeddedService, name: str) -> None:
    async def main() -> None:
        async with aio.Client(embedded_service.grpc_address, embedded_service.token) as client:
            study = await create(client, name)
            [trial] = await study.ask()
            assert (await study.tell(trial, 1.0)).state == "COMPLETED"
            assert (await study.best_trial()).number == trial.number
            assert [one.name for one in await client.list_studies(name_prefix=name)] == [study.name] == [name]
            async for change in study.watch():
                assert change.status.finished_count == 1
                break
            with pytest.raises(trimtab.errors.NotFound):
                await client.get_study(f"{name}-other")

    asyncio.run(main())


def test_optimize_measures_several_trials_at_once(embedded_service: EmbeddedService, name: str) -> None:
    async def main() -> None:
        async with aio.Client(embedded_service.grpc_address, embedded_service.token) as client:
            study = await create(client, name)
            together = asyncio.Barrier(2)

            async def fn(params: trimtab.Params) -> float:
                await together.wait()
                if params["x"] < 0.3:
                    raise trimtab.Infeasible("small")
                return float(params["x"])

            await study.optimize(fn, n_trials=6, parallel=2)
            trials = await study.trials()
            assert [(one.state == "INFEASIBLE") == (one.params["x"] < 0.3) for one in trials] == [True] * 6

    asyncio.run(main())


def test_a_cancelled_run_leaves_no_trial_open(embedded_service: EmbeddedService, name: str) -> None:
    async def main() -> None:
        async with aio.Client(embedded_service.grpc_address, embedded_service.token) as client:
            study = await create(client, name)
            running = asyncio.Event()

            async def fn(params: trimtab.Params) -> float:
                running.set()
                await asyncio.Event().wait()
                return 1.0

            task = asyncio.create_task(study.optimize(fn))
            await running.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [(one.state, one.reason) for one in await study.trials()] == [("FAILED", aio.CANCELLED)]

    asyncio.run(main())
