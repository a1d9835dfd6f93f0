"""The quiet-machine check: on this machine where the fault can be made, and else on what kernels say of theirs."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import wait_for
from trimtab_agent.supervisor import quiet, waiting

COMPONENT = """
name: idle
parameters: {x: {type: int, min: 0, max: 9, default: 1, env: X}}
applications: {main: {command: [sleep, "1"]}}
metrics: {seconds: wall_time}
"""
SPIN = f"""
name: spin
parameters: {{x: {{type: int, min: 0, max: 9, default: 1, env: X}}}}
applications:
  main:
    command: [sh, -c, "{sys.executable} -c 'import time\\nwhile time.process_time() < 0.3: pass'; echo used 3"]
metrics:
  seconds: wall_time
  cpu: cpu_time
  used: {{type: regex, pattern: "used (.*)", unaffected: true}}
  other: {{type: regex, pattern: "used (.*)"}}
"""


def test_readings_that_wait_on_a_busy_machine_are_not_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1.0, 2.0)  # a reading takes 2 s
    watched = waiting.Waiting(job="a")
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(clock), thread_time=lambda: 0.0))
    assert watched.look(ended=True) < 1


@pytest.fixture
def cpu() -> Iterator[int]:
    """This process, and those that it starts, have one CPU alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield min(before)
    os.sched_setaffinity(0, before)


@pytest.fixture
def somebody_else(cpu: int, programs_start: None) -> Iterator[None]:
    """A process that computes on that CPU all the time, and is nothing of ours.

    It has a session of its own, as the trial has. Linux divides a CPU between sessions first, so that in the session of
    these tests its part would depend on what the other tests compute.
    """
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    yield
    process.kill()
    process.wait()


def test_the_trials_own_load_is_not_counted_as_other_load(cpu: int, programs_start: None) -> None:
    """The load of this process and of its children belongs to the trial, whatever else the machine does."""
    watch = quiet.Watch([cpu])
    own = quiet._own_time()
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    while quiet._own_time() - own < 1.0:
        pass
    load = watch.load()
    assert load.others is not None
    assert load.others <= load.seconds - 1.0 + 0.05
    assert 0.5 <= load.spent < 1.0


def test_the_load_of_a_child_that_still_runs_is_the_trials_own(programs_start: None) -> None:
    """A daemon that the trial has started, such as a database, has not been waited for."""
    own = quiet._own_time()
    spin = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ntime.sleep(1000)"
    process = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert quiet._own_time() - own >= 0.45
    finally:
        process.kill()
        process.communicate()


def test_the_share_of_a_short_run_is_measured(somebody_else: None, cpu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle time is exact, so that a run of 50 ms on a CPU that others use gets its share and not a rounded one."""
    # The busy process is a child of this one, which it would not be of a supervisor.
    monkeypatch.setattr(quiet, "_own_time", lambda group: time.process_time())
    shares = []
    for _ in range(20):
        watch = quiet.Watch([cpu])
        time.sleep(0.05)
        shares.append((watch.load().others or 0.0) / 0.05)
    assert sorted(shares)[5] >= 0.7


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
    assert settled.interference.share > 0.5
    assert 0 <= settled.interference.wait < 0.5, "a program that sleeps needs no CPU"
    assert 0 < settled.interference.memory <= 1
    assert list(settled.interference.unaffected) == []
    assert "Linux " in settled.machine
    far_side.wait_for(lambda: "[warning: other processes took " in far_side.logs.get(lease, b"").decode())
    assert "[hint: CPU time depends less on other processes: metrics: {seconds: cpu_time}]" in (
        far_side.logs[lease].decode()
    )
    wait_for(lambda: settled.doubt in agent.log)
    done = run_agent_command(["try", str(file), "--state-dir", str(tmp_path / "try")])
    assert done.returncode == 0, done.stderr
    before, _, after = done.stdout.partition("command:")
    assert "warning: timing: other processes took " in before
    assert "\nwarning: the timing is doubtful: other processes took " in after
    assert "\nother processes: took " in after
    assert "; the run waited " in after
    done = run_agent_command(["try", str(file), "--json", "--state-dir", str(tmp_path / "try")])
    assert json.loads(done.stdout)["interference"]["share"] > 0.5
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


def stat(steal: int = 0, others: int = 0, idle: int = 0) -> str:
    """/proc/stat; times in hundredths of a second, of CPU 1; CPU 0 has had ten times as much, CPU 10 is busy."""
    times = [
        f"{factor * (50 + others)} 3 2 {factor * (900 + idle)} 5 40 40 {factor * (7 + steal)} 0 0"
        for factor in (10, 1, 1000)
    ]
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
    time.sleep(0.2)
    machine(tmp_path, **change)
    doubts = quiet.doubts([watch.load()])
    assert list(doubts) == [kind]
    assert doubts[kind].startswith(words)


def test_a_machine_where_nothing_is_wrong(tmp_path: Path) -> None:
    watch = quiet.Watch([1], machine(tmp_path))
    time.sleep(0.2)
    machine(tmp_path, proc__stat=stat(idle=1000))
    load = watch.load()
    assert quiet.doubts([load]) == {}
    assert quiet.text({}) == ""
    assert quiet.setting([1], str(tmp_path)) == {}
    assert quiet.interference([load]) == {
        "share": 0,
        "steal": 0,
        "swapped": 0,
        "memory": 0.7,
    }


def test_the_share_is_unknown_where_the_kernel_counts_nothing(tmp_path: Path) -> None:
    """In a sandbox whose /proc/stat stands still, no share is better than a wrong one."""
    watch = quiet.Watch([1], machine(tmp_path))
    time.sleep(0.2)
    load = watch.load()
    assert (load.others, load.wait) == (None, None)
    assert set(quiet.interference([load])) == {"steal", "swapped", "memory"}


@pytest.mark.parametrize(("own", "doubtful"), [(0.0, True), (5.0, False)])
def test_the_time_of_the_trial_is_subtracted_from_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: float, doubtful: bool
) -> None:
    spent = [7.0, 7.0 + own]
    monkeypatch.setattr(quiet, "_own_time", lambda group: spent.pop(0))
    watch = quiet.Watch([1], machine(tmp_path))
    watch._began -= 0.2
    machine(tmp_path, proc__stat=stat(others=20))
    load = watch.load()
    assert bool(quiet.doubts([load])) is doubtful
    assert load.spent == pytest.approx(own, abs=0.01)


@pytest.mark.parametrize(("waited", "share"), [(0, 0.0), (900, 0.0), (1100, 0.4)])
def test_steps_of_the_idle_time_are_no_load_unless_processes_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: int, share: float
) -> None:
    """A run of 20 ms on an idle CPU of which 10 ms of idle time are written, and that computes for 2 ms."""
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    place = machine(tmp_path, proc__pressure__cpu=pressure.format(5000))
    spent, moments = [7.0, 7.002], [100.0, 100.02]
    monkeypatch.setattr(quiet, "_own_time", lambda group: spent.pop(0))
    monkeypatch.setattr(quiet, "time", SimpleNamespace(monotonic=lambda: moments.pop(0)))
    watch = quiet.Watch([1], place)
    machine(tmp_path, proc__pressure__cpu=pressure.format(5000 + waited), proc__stat=stat(idle=1))
    assert quiet.interference([watch.load()])["share"] == pytest.approx(share)


def test_little_memory(tmp_path: Path) -> None:
    place = machine(tmp_path, proc__meminfo="MemTotal: 1000 kB\nMemAvailable: 30 kB\n")
    assert quiet.doubts([quiet.Watch([1], place).load()]) == {"memory": "only 3 % of the memory was available"}


def load(seconds: float, share: float | None, wait: float | None = 0.0, memory: float = 1.0) -> quiet.Load:
    """Return a run on two CPUs."""
    others = None if share is None else share * 2 * seconds
    return quiet.Load(
        seconds=seconds, cpus=2, spent=0.0, others=others, stolen=0.0, wait=wait, swapped=0, memory=memory
    )


def test_the_runs_of_a_trial_count_by_their_time() -> None:
    """A disturbance of one short run of many does not make the whole trial doubtful."""
    runs = [load(9.0, 0.0, 0.0), load(1.0, 0.5, 0.4, memory=0.5)]
    found = quiet.interference(runs)
    assert (found["share"], found["wait"], found["memory"]) == (0.05, 0.04, 0.5)
    assert quiet.doubts(runs) == {}
    assert list(quiet.doubts([load(1.0, 0.0), load(1.0, 0.5)])) == ["load"]
    assert quiet.interference([]) == {}


def test_what_is_unknown_of_one_run_is_unknown_of_the_trial() -> None:
    found = quiet.interference([load(1.0, 0.2, 0.1), load(1.0, None, None)])
    assert set(found) == {"steal", "swapped", "memory"}


@pytest.mark.parametrize("seconds", [0.03, 0.2, 600.0])
@pytest.mark.parametrize(("share", "reported"), [(0.09, False), (0.11, True), (0.5, True)])
def test_one_threshold_holds_for_all_lengths(seconds: float, share: float, reported: bool) -> None:
    found = quiet.judge(others=share * 4 * seconds, stolen=0.0, seconds=seconds, count=4, swapped=0, memory=1.0)
    assert bool(found) is reported
    if reported:
        assert found["load"] == f"other processes took {100 * share:.0f} % of the 4 CPUs"


@pytest.mark.parametrize(
    ("waited", "spent", "others", "part"),
    [
        (0.0, 10.0, 10.0, 0.0),  # nothing waits
        (5.0, 5.0, 15.0, 0.5),  # one thread with half of a CPU
        (2.0, 1.0, 19.0, 0.2),  # it mostly sleeps
        (20 / 3, 40 / 3, 20 / 3, 1 / 3),  # two threads on two CPUs, and one other
        (60.0, 20.0, 0.0, 0.0),  # eight threads on two CPUs wait for each other
        (64.0, 16.0, 4.0, 0.2),  # the same, and another process takes a fifth
        (1e9, 0.0, 20.0, 0.999),
    ],
)
def test_only_waiting_because_of_others_counts(waited: float, spent: float, others: float, part: float) -> None:
    assert waiting.fraction(waited, spent, others, 10.0) == pytest.approx(part)


def threads(monkeypatch: pytest.MonkeyPatch, place: Path, *times: tuple[float, float]) -> None:
    """Let threads have computed and waited for these times in seconds."""
    for number, (computed, waited) in enumerate(times):
        (place / str(number)).write_text(f"{computed * 1e9:.0f} {waited * 1e9:.0f} 17\n")
    paths = [str(place / str(number)) for number in range(len(times))]
    monkeypatch.setattr(waiting.Waiting, "_paths", lambda self: paths)


def test_the_waiting_of_threads_that_have_ended_is_kept_and_that_of_unseen_ones_is_estimated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched = waiting.Waiting()
    assert watched.seconds(0.0, 1.0) is None
    threads(monkeypatch, tmp_path, (1.0, 0.5), (2.0, 1.0))
    assert 0 < watched.look() <= waiting.FIRST_SEARCH, "a look before its time reads nothing"
    assert watched.seconds(3.0, 10.0) is None
    watched.look(True)
    assert watched.seconds(3.0, 10.0) == pytest.approx(1.5)
    (tmp_path / "1").unlink()
    threads(monkeypatch, tmp_path, (0.5, 0.0))  # the number of the first thread belongs to another one now
    watched.look(True)
    assert watched.seconds(3.5, 10.0) == pytest.approx(1.5)
    assert watched.seconds(7.0, 10.0) == pytest.approx(3.0), "half of the CPU time was seen"
    assert watched.seconds(7.1, 10.0) is None
    assert watched.seconds(7.1, 71.0) == pytest.approx(1.5 * 7.1 / 3.5), "a run that mostly sleeps waits little"
    assert watched.seconds(36.0, 1000.0) is None


def test_a_run_waits_for_a_busy_process(somebody_else: None, agent: AgentProcess, far_side: FarSide) -> None:
    """Its second process computes for 0.3 s, and the busy process takes half of the CPU."""
    (agent.components / "spin.yaml").write_text(SPIN)
    agent.start()
    settled = far_side.outcome(far_side.offer("spin", metrics=("seconds",)))
    assert settled.interference.HasField("wait")
    assert 0.2 <= settled.interference.wait < 0.9
    assert sorted(settled.interference.unaffected) == ["cpu", "used"]
    computed = settled.metrics["seconds"] * (1 - settled.interference.wait)
    assert 0.2 <= computed < 0.75 * settled.metrics["seconds"]


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
