"""Child processes: restart with back-off, death with the parent, logs of bounded size."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from service.embedded import out_of_memory, processes
from service.embedded.processes import Child, stop
from tests.factories.patience import PATIENCE, wait_for

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(1000)",
]


def child(argv: list[str], log: Path, **more: object) -> Child:
    return Child("it", argv, dict(os.environ), log, **more)  # type: ignore[arg-type]


def test_a_dead_process_restarts_after_a_back_off(tmp_path: Path, programs_start: None) -> None:
    it = child([sys.executable, "-c", "import sys; sys.exit(3)"], tmp_path / "log")
    it.start()
    reported = []

    def has_died_often() -> bool:
        reported.extend([message] if (message := it.keep_alive()) else [])
        return it.deaths == 3

    wait_for(has_died_often)
    assert "exit code 3" in reported[0]
    assert it.not_before - time.monotonic() > processes.BACK_OFF_SECONDS[1]
    assert it.keep_alive() is None  # not due yet
    assert not it.running()


def test_stop_kills_processes_that_ignore_signals_and_waits_for_all(tmp_path: Path, programs_start: None) -> None:
    log = tmp_path / "deaf.log"
    deaf = child(DEAF, log, stop_signals=((signal.SIGTERM, 0.2),))
    gentle = Child("gentle", SLEEP, dict(os.environ), tmp_path / "gentle.log")
    deaf.start()
    gentle.start()
    wait_for(lambda: log.read_text() == "deaf\n", "it ignores SIGTERM")
    stop([deaf, gentle])
    assert deaf.process is not None
    assert deaf.process.returncode == -signal.SIGKILL
    assert gentle.process is not None
    assert gentle.process.returncode == -signal.SIGTERM


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path, programs_start: None) -> None:
    script = (
        "import sys, time; from pathlib import Path; from service.embedded.processes import start\n"
        f"print(start({SLEEP!r}, log=Path(sys.argv[1])).pid, flush=True); time.sleep(1000)"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        grandchild = psutil.Process(int(parent.stdout.readline()))
        assert grandchild.is_running()
        parent.kill()
    grandchild.wait(PATIENCE)
    assert not grandchild.is_running()


def test_a_terminals_interrupt_does_not_reach_a_child(tmp_path: Path, programs_start: None) -> None:
    it = child(SLEEP, tmp_path / "log")
    it.start()
    try:
        assert it.process is not None
        assert os.getsid(it.process.pid) == it.process.pid != os.getsid(0)
    finally:
        stop([it])


def test_a_log_is_kept_small_while_it_is_written(tmp_path: Path, programs_start: None) -> None:
    log = tmp_path / "it.log"
    line = "x" * 1000
    lines = processes.LOG_BYTES // len(line) + 10
    script = f"import sys, time\nfor _ in range({lines}): print('{line}')\nsys.stdout.flush()\n"
    script += f"while open({str(log)!r}).read(): time.sleep(0.01)\nprint('after', flush=True); time.sleep(1000)"
    it = child([sys.executable, "-c", script], log)
    it.start()
    try:
        wait_for(lambda: log.stat().st_size == lines * (len(line) + 1), "the log is large, and whole")
        it.trim_log()
        wait_for(lambda: log.read_text() == "after\n", "the process goes on writing at the log's end")
        assert (tmp_path / "it.old.log").stat().st_size > processes.LOG_BYTES
    finally:
        stop([it])


TOUCH = "import sys, time, pathlib\nwhile True:\n    pathlib.Path(sys.argv[1]).touch()\n    time.sleep(0.05)\n"


def test_a_process_that_hangs_is_killed_and_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    monkeypatch.setattr(processes, "HANGING_SECONDS", 5.0)
    alive = tmp_path / "alive"
    it = child([sys.executable, "-c", TOUCH, str(alive)], tmp_path / "log", alive=alive)
    it.start()
    assert it.process is not None
    wait_for(alive.exists, "it gives a sign of life")
    first = it.process.pid
    reported: list[str] = []

    def look() -> bool:
        reported.extend([message] if (message := it.keep_alive()) else [])
        return it.process is not None and it.process.pid != first

    os.kill(first, signal.SIGSTOP)
    try:
        wait_for(look, "it is another process")
        assert "it hangs: it gave no sign of life for 5 s" in reported[0]
        assert "was killed by signal 9" in reported[1]
        environment = Path(f"/proc/{it.process.pid}/environ")
        wait_for(lambda: b"TRIMTAB_PREDECESSOR=hung" in environment.read_bytes(), "the next one knows it")
    finally:
        stop([it])


def test_a_supervisor_that_did_not_run_itself_kills_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    alive = tmp_path / "alive"
    it = child(SLEEP, tmp_path / "log", alive=alive)
    it.start()
    alive.touch()
    try:
        assert it.keep_alive() is None
        later = time.monotonic() + 10_000
        monkeypatch.setattr(time, "monotonic", lambda: later)
        assert it.keep_alive() is None
        assert it.running()
    finally:
        monkeypatch.undo()
        stop([it])


LOGS_PREDECESSOR = "import os, time; print(os.environ['TRIMTAB_PREDECESSOR'], flush=True); time.sleep(1000)"


@pytest.mark.parametrize(
    ("number", "short_of_memory", "end"),
    [
        (signal.SIGKILL, False, "stopped"),
        (signal.SIGKILL, True, "died"),
        (signal.SIGTERM, False, "stopped"),
        (signal.SIGSEGV, False, "died"),
    ],
)
def test_a_process_learns_how_its_predecessor_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    short_of_memory: bool,
    end: str,
    programs_start: None,
) -> None:
    kills = [7]
    monkeypatch.setattr(out_of_memory, "kills", lambda: kills[0])
    log = tmp_path / "log"
    it = child([sys.executable, "-c", LOGS_PREDECESSOR], log)
    it.start()
    try:
        wait_for(lambda: log.read_text() == "stopped\n", "the first has no predecessor")
        assert it.process is not None
        kills[0] += short_of_memory
        it.process.send_signal(number)
        wait_for(lambda: bool(it.keep_alive()) or it.process is None, "its death is noticed")
        wait_for(lambda: it.keep_alive() is None and it.running(), "it runs again")
        wait_for(lambda: log.read_text() == f"stopped\n{end}\n", "the second knows of the first")
    finally:
        stop([it])


def test_who_kills_a_process_does_not_delay_its_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    monkeypatch.setattr(out_of_memory, "kills", lambda: 0)
    it = child(SLEEP, tmp_path / "log")
    it.start()
    try:
        for _ in range(len(processes.BACK_OFF_SECONDS)):
            wait_for(lambda: it.keep_alive() is None and it.running(), "it runs")
            assert it.process is not None
            it.process.kill()
            it.process.wait()
            assert "It restarts in 0.1 s" in (it.keep_alive() or "")
    finally:
        stop([it])


def test_the_kernel_counts_its_kills_for_want_of_memory() -> None:
    assert (out_of_memory.kills() or 0) >= 0
    assert isinstance(out_of_memory.kills(), int)
