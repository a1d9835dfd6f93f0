"""Metrics that every runner reads from a job."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import SECONDS, metric, run, shell
from tests.factories.patience import PATIENCE, wait_for_async
from trimtab_agent.runners.base import Outcome, Runner
from trimtab_agent.runners.local import LocalRunner


@pytest.mark.without_ray
async def test_metrics_of_every_kind(runner: Runner, folder: Path) -> None:
    (folder / "parse.py").write_text(
        "import csv\n"  # its own imports work
        "def size(run):\n"
        "    assert run.seconds > 0 and run.stderr == 'e\\n' and run.params == {'p': 1}\n"
        "    return len((run.work / 'out.json').read_text()) + len(run.stdout)\n"
    )
    metrics = [
        SECONDS,
        metric("rate", "regex", pattern=r"rate (\S+)", take="max"),
        metric("deep", "json", source="out.json", path="a.1"),
        metric("size", "python", file=str(folder / "parse.py"), function="size"),
        metric("spare", "regex", pattern=r"none (\d)"),
    ]
    script = "echo rate 2; echo rate 3; echo rate 1; echo e >&2; printf '{\"a\": [1, 5]}' > out.json"
    result = await run(runner, folder, shell(folder, script, metrics=metrics, required=["rate", "deep", "size"]))
    assert result.outcome is Outcome.COMPLETED, result.reason
    seconds = result.metrics["seconds"]
    assert result.metrics == {"seconds": seconds, "rate": 3, "deep": 5, "size": 13 + 21}
    assert "[metric 'spare' omitted: nothing in stdout matches" in (folder / "log").read_text()


@pytest.mark.without_ray
@pytest.mark.parametrize(
    ("wanted", "outcome", "words"),
    [
        ({"kind": "regex", "pattern": r"x=(\d)"}, Outcome.INFEASIBLE, "nothing in stdout matches"),
        ({"kind": "json", "path": "x"}, Outcome.INFEASIBLE, "neither stdout nor its last line is JSON"),
        ({"kind": "json", "path": "x", "source": "gone.json"}, Outcome.INFEASIBLE, "gone.json cannot be read"),
        ({"kind": "python", "function": "none"}, Outcome.INFEASIBLE, "parse.py:none found no number"),
        ({"kind": "python", "function": "nan"}, Outcome.INFEASIBLE, "nan is not a finite number"),
        ({"kind": "python", "function": "broken"}, Outcome.FAILED, "parse.py:broken raised KeyError: 'k'"),
        ({"kind": "python", "function": "gone"}, Outcome.FAILED, "raised AttributeError"),
        ({"kind": "python", "function": "crash"}, Outcome.FAILED, "was ended by SIGKILL before it returned a value"),
        ({"kind": "python", "function": "hang", "timeout": 0.5}, Outcome.FAILED, "did not end within 0.5 s"),
    ],
)
async def test_metric_that_is_not_found(
    runner: Runner, folder: Path, wanted: dict[str, Any], outcome: Outcome, words: str
) -> None:
    (folder / "parse.py").write_text(
        "import os, signal, time\n"
        "def none(run): return None\n"
        "def nan(run): return float('nan')\n"
        "def broken(run): return {}['k']\n"
        "def crash(run): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def hang(run): time.sleep(1000)\n"
    )
    spec = metric("m", **{"file": str(folder / "parse.py"), **wanted})
    result = await run(runner, folder, shell(folder, "echo nothing", metrics=[spec], required=["m"]))
    assert result.outcome is outcome
    assert result.reason.startswith("metric 'm': ")
    assert words in result.reason


@pytest.mark.without_ray
async def test_a_costly_pattern_does_not_hold_a_cancellation_up(runner: Runner, folder: Path) -> None:
    spec = metric("m", "regex", pattern=r"(a+)+b")
    await runner.submit(folder, shell(folder, f"echo {'a' * 40}; touch done", metrics=[spec], required=["m"]))
    await wait_for_async((folder / "work" / "done").exists)
    await asyncio.sleep(0.3)
    await asyncio.wait_for(runner.cancel(folder), PATIENCE)
    assert (await runner.wait(folder)).outcome is Outcome.CANCELLED
    if isinstance(runner, LocalRunner):
        # The supervisor has left its search by itself: it was not killed, as one that does not answer would be.
        assert "[cancelled] cancelled\n" in (folder / "log").read_text()


@pytest.mark.without_ray
async def test_repeats_are_aggregated_and_prepared_each_time(runner: Runner, folder: Path) -> None:
    (folder / "work" / "n").write_text("")
    value = metric("value", "regex", pattern=r"v=(\d)")
    spec = shell(
        folder,
        "echo v=$(wc -c < n)",
        header=[["sh", "-c", "printf x >> n"]],
        repeats=3,
        aggregate="max",
        metrics=[value, SECONDS],
        required=["value"],
    )
    result = await run(runner, folder, spec)
    assert result.metrics["value"] == 3
    assert result.elapsed > result.metrics["seconds"]
