"""Metrics that every runner reads from a job."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.runners.jobs import SECONDS, job, metric, run, shell
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


@pytest.mark.without_ray
async def test_cpu_time_is_that_of_all_processes_of_the_run(runner: Runner, folder: Path) -> None:
    """Also of a process that its parent leaves behind. Sleeping costs nothing."""
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    command = ["sh", "-c", 'setsid "$0" -c "$2" & "$0" -c "$1"; "$0" -c "$1"; sleep 1.5', sys.executable, spin]
    metrics = [SECONDS, metric("cpu", "cpu_time")]
    result = await run(runner, folder, job(folder, *command, f"{spin}\ntime.sleep(1000)", metrics=metrics))
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert 0.6 <= result.metrics["cpu"] < result.metrics["seconds"]
    assert result.interference is not None
    assert result.interference["unaffected"] == ["cpu"]


SERVER = """
import os, sys, time
open("/proc/self/comm", "w").write("trimtab-serves")
print(flush=True)
while not os.path.exists(sys.argv[1] + "/go"):
    time.sleep(0.01)
while time.process_time() < 0.4:
    pass
open(sys.argv[1] + "/done", "w").close()
time.sleep(1000)
"""


@pytest.fixture
def server(folder: Path, programs_start: None) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, folder / "work"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield
    process.kill()
    process.communicate()


@pytest.mark.without_ray
async def test_the_cpu_time_of_a_server_outside_the_trial(runner: Runner, folder: Path, server: None) -> None:
    script = "touch go; until [ -e done ]; do sleep 0.02; done"
    metrics = [metric("server", "cpu_time", process="trimtab-serves"), metric("cpu", "cpu_time")]
    result = await run(runner, folder, shell(folder, script, metrics=metrics, required=["server"]))
    assert result.outcome is Outcome.COMPLETED, result.reason
    # It has spent some time before the run.
    assert 0.2 <= result.metrics["server"] < 0.5
    assert result.metrics["cpu"] > 0


@pytest.mark.without_ray
async def test_a_server_that_does_not_run_is_the_machines_fault(runner: Runner, folder: Path) -> None:
    metrics = [metric("server", "cpu_time", process="no-such-server")]
    result = await run(runner, folder, shell(folder, "true", metrics=metrics, required=["server"]))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("metric 'server': no process 'no-such-server' of ")
