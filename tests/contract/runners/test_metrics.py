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
        ({"kind": "json", "path": "x"}, Outcome.INFEASIBLE, "stdout has no JSON document"),
        ({"kind": "json", "path": "x", "source": "gone.json"}, Outcome.INFEASIBLE, "gone.json cannot be read"),
        ({"kind": "python", "function": "none"}, Outcome.INFEASIBLE, "parse.py:none found no number"),
        ({"kind": "python", "function": "nan"}, Outcome.INFEASIBLE, "nan is not a finite number"),
        ({"kind": "python", "function": "huge"}, Outcome.INFEASIBLE, "1e+155 is too large for a measurement"),
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
        "def huge(run): return 1e155\n"
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


@pytest.mark.without_ray
async def test_the_peak_of_one_process_is_found_however_short_it_is(runner: Runner, folder: Path) -> None:
    script = "import os; held = b'x' * (90 << 20); os._exit(0)"
    metrics = [metric("memory", "peak_memory")]
    result = await run(runner, folder, job(folder, "sh", "-c", '"$0" -c "$1"', sys.executable, script, metrics=metrics))
    assert result.outcome is Outcome.COMPLETED, result.reason
    assert 90 << 20 <= result.metrics["memory"] < 130 << 20
    assert result.interference is not None
    assert result.interference["unaffected"] == ["memory"]


@pytest.mark.without_ray
async def test_bytes_written_are_those_of_all_processes_of_the_run(runner: Runner, folder: Path) -> None:
    """Also of a process that its parent leaves behind, but not of a pipe, nor of a run before."""
    script = (
        "head -c 3000000 /dev/zero > a; head -c 9000000 /dev/zero | cat > /dev/null; "
        "(setsid sh -c 'head -c 2000000 /dev/zero > b; touch done; sleep 1000' &); "
        "until [ -e done ]; do sleep 0.02; done"
    )
    metrics = [metric("written", "bytes_written"), metric("memory", "peak_memory")]
    result = await run(runner, folder, shell(folder, script, metrics=metrics, repeats=2, header=[["rm", "-f", "done"]]))
    assert result.outcome is Outcome.COMPLETED, result.reason
    if result.metrics["written"] == 0:
        pytest.skip("the file system of temporary files counts no written bytes")
    # While the kernel writes to the disk at the same time, it counts large pages that get more data twice. The pipe, or
    # the run before, would add 5 MB or more.
    assert 5_000_000 <= result.metrics["written"] < 9_000_000


SERVER = """
import os, sys, time
open("/proc/self/comm", "w").write("trimtab-serves")
print(flush=True)
while not os.path.exists(sys.argv[1] + "/go"):
    time.sleep(0.01)
while time.process_time() < 0.4:
    pass
held = b"x" * (50 << 20)
with open(sys.argv[1] + "/log", "wb") as log:
    log.write(held[: 4 << 20])
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
async def test_what_a_server_outside_the_trial_uses(runner: Runner, folder: Path, server: None) -> None:
    script = "touch go; until [ -e done ]; do sleep 0.02; done; sleep 0.7"
    metrics = [
        metric("server", "cpu_time", process="trimtab-serves"),
        metric("memory", "peak_memory", process="trimtab-serves"),
        metric("written", "bytes_written", process="trimtab-serves"),
        metric("cpu", "cpu_time"),
    ]
    result = await run(runner, folder, shell(folder, script, metrics=metrics, required=["server"]))
    assert result.outcome is Outcome.COMPLETED, result.reason
    # It has spent some time before the run.
    assert 0.2 <= result.metrics["server"] < 0.6
    assert 50 << 20 <= result.metrics["memory"] < 80 << 20
    written = result.metrics["written"]
    assert written == 0 or 4 << 20 <= written < 5 << 20  # 0: the file system counts none
    assert result.metrics["cpu"] > 0


@pytest.mark.without_ray
@pytest.mark.parametrize("kind", ["cpu_time", "peak_memory", "bytes_written"])
async def test_a_server_that_does_not_run_is_the_machines_fault(runner: Runner, folder: Path, kind: str) -> None:
    metrics = [metric("server", kind, process="no-such-server")]
    result = await run(runner, folder, shell(folder, "true", metrics=metrics, required=["server"]))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("metric 'server': no process 'no-such-server' of ")
