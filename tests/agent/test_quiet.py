"""The quiet-machine check: on this machine where the fault can be made, and else on what kernels say of theirs."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import wait_for
from trimtab_agent.supervisor import quiet

COMPONENT = """
name: idle
parameters: {x: {type: int, min: 0, max: 9, default: 1, env: X}}
applications: {main: {command: [sleep, "1"]}}
metrics: {seconds: wall_time}
"""


@pytest.fixture
def cpu() -> Iterator[int]:
    """This process, and those that it starts, have one CPU alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield min(before)
    os.sched_setaffinity(0, before)


@pytest.fixture
def somebody_else(cpu: int, programs_start: None) -> Iterator[None]:
    """A process that computes on that CPU whenever the trial does not, and is nothing of ours."""
    process = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()


def test_the_trials_own_load_is_not_counted_as_other_load(cpu: int, programs_start: None) -> None:
    """The load of this process and of its children belongs to the trial, whatever else the machine does."""
    watch = quiet.Watch([cpu])
    # time that the hypervisor took meanwhile may be among what a process is said to have spent
    busy, own = sum(watch._times()), quiet._own_time()
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    while quiet._own_time() - own < 1.0:
        pass
    spent = quiet._own_time() - own
    assert sum(watch._times()) - busy >= spent - 0.1, "what is subtracted has been counted"


def test_a_doubtful_timing_is_shown_with_the_trial(
    somebody_else: None, agent: AgentProcess, far_side: FarSide, tmp_path: Path
) -> None:
    """On the trial, in its log and the agent's, and by `try` and `check`; its value counts all the same."""
    file = agent.components / "idle.yaml"
    file.write_text(COMPONENT)
    agent.start()
    lease = far_side.offer("idle", metrics=("seconds",))
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED
    assert settled.metrics["seconds"] >= 1
    assert settled.reason == ""
    assert settled.doubt.startswith("other processes took ")
    assert " % of the CPU" in settled.doubt
    assert "Linux " in settled.machine
    far_side.wait_for(lambda: "[warning: other processes took " in far_side.logs.get(lease, b"").decode())
    wait_for(lambda: settled.doubt in agent.log)
    done = run_agent_command(["try", str(file), "--state-dir", str(tmp_path / "try")])
    assert done.returncode == 0, done.stderr
    before, _, after = done.stdout.partition("command:")
    assert "warning: timing: other processes took " in before
    assert "\nwarning: the timing is doubtful: other processes took " in after
    done = run_agent_command(["check", str(file)])
    assert "warning: timing: other processes took " in done.stdout


def machine(place: Path, **files: str) -> str:
    """/proc and /sys of a machine; in names, __ stands for a slash."""
    kept = {
        "proc__stat": stat(),
        "proc__meminfo": "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 700 kB\n",
        "proc__vmstat": "nr_free_pages 5\npswpin 7\npswpout 9\n",
        **files,
    }
    for name, text in kept.items():
        path = place / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(place)


def stat(steal: int = 0, others: int = 0) -> str:
    """/proc/stat; times in hundredths of a second, of CPU 1; CPU 0 has had ten times as much, CPU 10 is busy."""
    times = [f"{factor * (50 + others)} 3 2 900 5 40 40 {factor * (7 + steal)} 0 0" for factor in (10, 1, 1000)]
    return (
        "cpu  1 1 1 1 1 1 1 1 0 0\n"
        + "".join(f"cpu{cpu} {text}\n" for cpu, text in zip((0, 1, 10), times, strict=True))
        + "intr 12345 0 0\nctxt 99\n"
    )


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"proc__stat": stat(steal=30_000)}, "steal", "other virtual machines took 100 % of the CPU (steal)"),
        ({"proc__stat": stat(others=30_000)}, "load", "other processes took "),
        ({"proc__vmstat": "pswpin 400\npswpout 9\n"}, "swap", "the machine swapped (393 pages)"),
    ],
)
def test_disturbances_during_the_watch_are_reported(
    tmp_path: Path, change: dict[str, str], kind: str, words: str
) -> None:
    watch = quiet.Watch([1], machine(tmp_path))
    time.sleep(quiet.LEAST_TIME + 0.02)
    machine(tmp_path, **change)
    doubts = watch.doubts()
    assert list(doubts) == [kind]
    assert doubts[kind].startswith(words)


def test_a_machine_where_nothing_is_wrong(tmp_path: Path) -> None:
    watch = quiet.Watch([1], machine(tmp_path))
    time.sleep(quiet.LEAST_TIME + 0.02)
    assert watch.doubts() == {}
    assert quiet.text({}) == ""
    assert quiet.setting([1], str(tmp_path)) == {}


@pytest.mark.parametrize(("own", "kinds"), [(300.0, []), (0.0, ["load"]), (150.0, ["load"])])
def test_the_time_of_the_trial_is_subtracted_from_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: float, kinds: list[str]
) -> None:
    spent = [7.0, 7.0 + own]
    monkeypatch.setattr(quiet, "_own_time", lambda: spent.pop(0))
    watch = quiet.Watch([1], machine(tmp_path))
    time.sleep(quiet.LEAST_TIME + 0.02)
    machine(tmp_path, proc__stat=stat(others=30_000))
    assert list(watch.doubts()) == kinds


def test_little_memory(tmp_path: Path) -> None:
    place = machine(tmp_path, proc__meminfo="MemTotal: 1000 kB\nMemAvailable: 30 kB\n")
    assert quiet.Watch([1], place).doubts() == {"memory": "only 3 % of the memory was available"}


def test_a_short_run_says_nothing_of_the_load(tmp_path: Path) -> None:
    watch = quiet.Watch([1], machine(tmp_path))
    machine(tmp_path, proc__stat=stat(steal=30, others=30))
    watch._began -= quiet.LEAST_TIME / 2
    assert watch.doubts() == {}


@pytest.mark.parametrize(
    ("files", "kinds", "words"),
    [
        ({"cpu1__cpufreq__scaling_governor": "performance\n"}, [], ""),
        (
            {"cpu1__cpufreq__scaling_governor": "schedutil\n"},
            ["governor"],
            "(governor schedutil; constant: performance)",
        ),
        ({"cpu0__cpufreq__scaling_governor": "powersave\n"}, [], ""),  # not the trial's
        ({"intel_pstate__no_turbo": "0\n"}, ["turbo"], "turbo is on"),
        ({"intel_pstate__no_turbo": "1\n"}, [], ""),
        ({"cpufreq__boost": "1\n"}, ["turbo"], "turbo is on"),
    ],
)
def test_frequency_scaling(tmp_path: Path, files: dict[str, str], kinds: list[str], words: str) -> None:
    place = machine(tmp_path, **{f"sys__devices__system__cpu__{name}": text for name, text in files.items()})
    found = quiet.setting([1], place)
    assert list(found) == kinds
    assert words in " ".join(found.values())


@pytest.mark.parametrize(
    ("share", "reported"), [(quiet.MOST_LOAD - 0.01, False), (quiet.MOST_LOAD + 0.01, True), (0.5, True)]
)
def test_thresholds_are_shares_of_the_trials_cpus(share: float, reported: bool) -> None:
    doubts = quiet.judge(others=share * 4 * 10.0, stolen=0.0, seconds=10.0, count=4, swapped=0, memory=1.0)
    assert bool(doubts) is reported
    if reported:
        assert doubts["load"] == f"other processes took {100 * share:.0f} % of the 4 CPUs"
