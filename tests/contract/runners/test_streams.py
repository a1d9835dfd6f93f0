"""Measurements that every runner reports while an application runs."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.runners.jobs import left_behind, run, shell
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.runners.base import JobState, Outcome, Runner


def reported(folder: Path) -> list[tuple[int, dict[str, float]]]:
    """The measurements so far."""
    with suppress(FileNotFoundError):
        whole, _, _ = (folder / "measurements").read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        assert [line["elapsed"] for line in lines] == sorted(line["elapsed"] for line in lines)
        return [(line["step"], line["metrics"]) for line in lines]
    return []


@pytest.mark.without_ray
async def test_measurements_come_while_the_application_runs(runner: Runner, folder: Path) -> None:
    """By lines of the output, and of a file that is followed; each whole line once."""
    gate = folder / "work" / "gate"
    script = (
        "echo noise; echo step 1: loss=0.5; echo step 2: loss=nan; printf 'step 3: lo'\n"
        'echo \'{"step": 10, "rate": 7, "name": "x"}\' > reported; printf \'{"step": 11, "rate"\' >> reported\n'
        f"until [ -e {gate} ]; do sleep 0.02; done\n"
        "echo ss=0.25; echo ': 8}' >> reported; printf 'step 4: loss=0.125'"
    )
    streams = [
        {"source": "stdout", "pattern": r"step (?P<step>\d+): loss=(?P<loss>\S+)"},
        {"source": "reported", "pattern": ""},
    ]
    await runner.submit(folder, shell(folder, script, stream=streams))
    await wait_for_async(lambda: sorted(reported(folder)) == [(1, {"loss": 0.5}), (10, {"rate": 7})])
    assert await runner.status(folder) is JobState.RUNNING
    gate.touch()
    assert (await asyncio.wait_for(runner.wait(folder), PATIENCE)).outcome is Outcome.COMPLETED
    assert sorted(reported(folder)) == [
        (1, {"loss": 0.5}),
        (3, {"loss": 0.25}),
        (4, {"loss": 0.125}),
        (10, {"rate": 7}),
        (11, {"rate": 8}),
    ]


@pytest.mark.without_ray
async def test_steps_without_numbers_are_counted_and_many_are_thinned(runner: Runner, folder: Path) -> None:
    spec = shell(folder, "for i in $(seq 1234); do echo v=$i; done", repeats=2)
    result = await run(runner, folder, replace(spec, stream=[{"source": "stdout", "pattern": "v=(?P<v>.*)"}]))
    assert result.outcome is Outcome.COMPLETED
    steps = [*range(1, 100), *range(100, 1000, 10), 1000, 1100, 1200]
    assert reported(folder) == [(step, {"v": step}) for step in steps]


@pytest.mark.without_ray
async def test_a_costly_pattern_of_a_stream_ends_the_stream_alone(runner: Runner, folder: Path) -> None:
    spec = shell(folder, f"echo {'a' * 40}; sleep 3; echo v=1")
    result = await run(runner, folder, replace(spec, stream=[{"source": "stdout", "pattern": "(?P<v>(a+)+b)|v=(.)"}]))
    assert result.outcome is Outcome.COMPLETED
    assert reported(folder) == []
    assert "[stream: reading lines took 2 s, so no more are read" in (folder / "log").read_text()


@pytest.mark.without_ray
async def test_hostile_output_ends_neither_the_reading_nor_the_supervision(runner: Runner, folder: Path) -> None:
    """Lines that no JSON reader can take, then a number that no float can hold, then a measurement."""
    script = (
        "python3 -c \"print('[' * 20000); print('{\\\"v\\\": 1' + '0' * 400 + '}')\"; "
        'setsid sleep 1000 & echo \'{"step": 7, "v": 1}\''
    )
    streams = [{"source": "stdout", "pattern": ""}]
    result = await run(runner, folder, shell(folder, script, stream=streams))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "")
    assert reported(folder) == [(7, {"v": 1})]
    assert left_behind(folder) == []


@pytest.mark.without_ray
async def test_a_named_pipe_in_place_of_a_file_does_not_hold_up_the_time_out(runner: Runner, folder: Path) -> None:
    streams = [{"source": "reported", "pattern": ""}]
    result = await run(runner, folder, shell(folder, "mkfifo reported; sleep 1000", stream=streams, timeout=1.0))
    assert result.outcome is Outcome.INFEASIBLE
    assert left_behind(folder) == []
