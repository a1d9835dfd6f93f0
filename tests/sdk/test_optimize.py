"""`Study.optimize` against a real service."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import make_study
from trimtab.study import Study


def states(study: Study) -> Counter[str]:
    return Counter(str(trial.state) for trial in study.trials())


def slow(params: trimtab.Params) -> float:
    time.sleep(0.1)
    return 1.0


@pytest.mark.parametrize("parallel", [1, 4])
def test_every_trial_is_measured_once(study: Study, parallel: int) -> None:
    running, most, seen = 0, 0, []
    guard = threading.Lock()
    # as many at a time as there may be, and never more
    together = threading.Barrier(parallel)

    def fn(params: trimtab.Params) -> float:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
            seen.append(params["x"])
        together.wait(PATIENCE)
        with guard:
            running -= 1
        return float(params["x"])

    study.optimize(fn, n_trials=20, parallel=parallel, progress=False)
    assert states(study) == {"COMPLETED": 20}
    assert sorted(seen) == sorted(trial.metrics["seconds"] for trial in study.trials())
    assert most == parallel


def test_optimize_runs_in_the_calling_thread_by_default(study: Study) -> None:
    threads = set()

    def fn(params: trimtab.Params) -> float:
        threads.add(threading.current_thread())
        return 1.0

    study.optimize(fn, n_trials=3, progress=False)
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("parallel", [1, 3])
def test_the_exception_of_the_function_decides_the_state_of_the_trial(study: Study, parallel: int) -> None:
    count = 0

    def fn(params: trimtab.Params) -> dict[str, float]:
        nonlocal count
        count += 1
        if count % 3 == 1:
            raise trimtab.Infeasible("does not compile")
        if count % 3 == 2:
            raise OSError("disk full")
        return {"seconds": 1.0, "watts": 80}

    study.optimize(fn, n_trials=9, parallel=parallel, progress=False)
    found = study.trials()
    assert states(study) == {"INFEASIBLE": 3, "FAILED": 3, "COMPLETED": 3}
    assert {trial.reason for trial in found} == {"does not compile", "OSError: disk full", ""}
    assert {"seconds": 1.0, "watts": 80.0} in [trial.metrics for trial in found]


def test_the_first_failure_has_a_traceback_and_the_others_are_counted(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    def broken_inside() -> float:
        raise ValueError("no such file")

    count = 0

    def fn(params: trimtab.Params) -> float:
        nonlocal count
        count += 1
        return broken_inside() if count % 2 else "fast" if count == 2 else 1.0  # type: ignore[return-value]

    with caplog.at_level("WARNING", "trimtab"):
        study.optimize(fn, n_trials=6, progress=False)
    first, last = caplog.records
    assert first.getMessage() == f'trial failed study={study.name} trial=1 error="ValueError: no such file"'
    assert "in broken_inside" in caplog.text
    assert last.getMessage() == f"trials failed in this run study={study.name} failed=4"
    refused = study.trials()[1]
    assert refused.state == "FAILED"
    assert "metrics.seconds: 'fast' is not allowed" in refused.reason, "as in tell"


@pytest.mark.parametrize("parallel", [1, 3])
def test_an_exception_that_is_not_caught_comes_out_after_the_others_have_finished(study: Study, parallel: int) -> None:
    count = 0

    def fn(params: trimtab.Params) -> float:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyError("a bug")
        time.sleep(0.2)
        return 1.0

    with pytest.raises(KeyError, match="a bug"):
        study.optimize(fn, n_trials=30, parallel=parallel, progress=False, catch=(OSError,))
    found = states(study)
    assert found["FAILED"] == 1
    assert found["ACTIVE"] == found["REQUESTED"] == 0
    assert found["COMPLETED"] in range(2, 6)


@pytest.mark.parametrize("result", [None, "fast", {"secs": 1.0}, {"seconds": None}])
def test_a_function_that_never_gives_a_result_is_taken_to_be_broken(study: Study, result: Any) -> None:
    with pytest.raises(trimtab.errors.InvalidInput):
        study.optimize(lambda params: result, n_trials=50, progress=False)
    assert states(study) == {"FAILED": 10}
    assert "InvalidInput" in study.trials()[0].reason


def test_it_ends_with_the_study_s_own_budget(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, max_trials=7)
    study.optimize(lambda params: 1.0, parallel=3, progress=False)
    assert states(study) == {"COMPLETED": 7}
    with pytest.raises(trimtab.errors.Conflict):
        study.optimize(lambda params: 1.0, n_trials=1, progress=False)


def test_it_ends_with_the_space(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, space=[trimtab.Int("n", 1, 5)], constraints=[], algorithm="grid", noisy=False)
    study.optimize(lambda params: float(params["n"]), parallel=3, progress=False)
    assert states(study) == {"COMPLETED": 5}


def test_it_ends_when_its_time_is_over(study: Study) -> None:
    study.optimize(slow, timeout=0.5, progress=False)
    found = states(study)
    assert set(found) == {"COMPLETED"}
    assert 1 <= found["COMPLETED"] <= 8


def test_a_study_stopped_by_somebody_else_ends_it(client: trimtab.Client, study: Study) -> None:
    other, count = client.get_study(study.name), 0

    def fn(params: trimtab.Params) -> float:
        nonlocal count
        count += 1
        if count == 4:
            other.stop()
        return slow(params)

    study.optimize(fn, parallel=2, progress=False)
    assert states(study)["ACTIVE"] == 0
    assert study.state == "ABORTED"


def test_trials_left_from_a_crash_are_done_first(
    embedded_service: EmbeddedService, client: trimtab.Client, study: Study
) -> None:
    client.get_study(study.name, client_id="worker").ask(2)
    with trimtab.Client(client.address, embedded_service.token, client_id="worker") as restarted:
        restarted.get_study(study.name).optimize(lambda params: 1.0, n_trials=3, progress=False)
    assert states(study) == {"COMPLETED": 3}


@pytest.mark.parametrize("arguments", [{"n_trials": -1}, {"parallel": 0}])
def test_bad_arguments(study: Study, arguments: dict[str, int]) -> None:
    with pytest.raises(trimtab.errors.InvalidInput):
        study.optimize(lambda params: 1.0, **arguments)  # type: ignore[arg-type]


# --- Ctrl-C, as a user presses it: a signal to a program

PROGRAM = """
import os, sys, time, trimtab
address, token, name, parallel, gate = sys.argv[1:]
study = trimtab.Client(address, token).get_study(name)
def fn(params):
    os.write(1, b"running\\n")
    while not os.path.exists(gate): time.sleep(0.02)
    return 1.0
try:
    study.optimize(fn, n_trials=1000, parallel=int(parallel))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Program:
    """A program of the user's that optimises."""

    def __init__(self, service: EmbeddedService, study: Study, parallel: int, gate: Path) -> None:
        """Create the thread. Its function ends when the file `gate` exists."""
        arguments = [service.grpc_address, service.token, study.name, str(parallel), str(gate)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        for _ in range(parallel):
            assert self.process.stdout.readline() == "running\n"

    def interrupt(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[str, str]:
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        return out, err


def test_ctrl_c_ends_the_running_function_and_leaves_nothing_open(
    embedded_service: EmbeddedService, study: Study, tmp_path: Path
) -> None:
    program = Program(embedded_service, study, parallel=1, gate=tmp_path / "gate")
    program.interrupt()
    assert "interrupted" in program.end()[0]
    [trial] = study.trials()
    assert (trial.state, trial.reason) == ("FAILED", "interrupted by the user")


def test_ctrl_c_lets_threads_finish(embedded_service: EmbeddedService, study: Study, tmp_path: Path) -> None:
    program = Program(embedded_service, study, parallel=3, gate=tmp_path / "gate")
    program.interrupt()
    assert program.process.stderr is not None
    assert "press Ctrl-C again to abandon them" in program.process.stderr.readline()
    (tmp_path / "gate").touch()
    out, _ = program.end()
    assert out.splitlines()[-1] == "interrupted"
    assert states(study) == {"COMPLETED": 3}


def test_a_second_ctrl_c_waits_for_nothing(embedded_service: EmbeddedService, study: Study, tmp_path: Path) -> None:
    program = Program(embedded_service, study, parallel=3, gate=tmp_path / "gate")
    program.interrupt()
    assert program.process.stderr is not None
    assert "interrupted" in program.process.stderr.readline()
    program.interrupt()
    assert "interrupted" in program.end()[0]
    assert states(study) == {"FAILED": 3}


def test_progress_goes_to_standard_error(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    study.optimize(lambda params: float(params["x"]), n_trials=5)
    out, err = capsys.readouterr()
    assert out == ""
    assert "trial 1: seconds" in err


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"n_trials": 2.5}, "a whole number of at least 0"),
        ({"n_trials": "3"}, "a whole number of at least 0"),
        ({"n_trials": True}, "a whole number of at least 0"),
        ({"timeout": "5"}, "a number"),
        ({"timeout": float("nan")}, "a number of seconds of at least 0, or None"),
        ({"parallel": "2"}, "a whole number of at least 1"),
    ],
)
def test_arguments_of_another_kind_are_refused(study: Study, given: dict[str, Any], allowed: str) -> None:
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.optimize(slow, progress=False, **given)
    [name] = given
    assert (caught.value.data["field"], caught.value.data["allowed"]) == (name, allowed)
    assert study.trials() == []


def test_a_paused_study_makes_the_run_wait(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    study.pause()

    def resume() -> None:
        while "the study is paused" not in caplog.text:
            time.sleep(0.01)
        study.resume()

    other = threading.Thread(target=resume)
    other.start()
    study.optimize(slow, n_trials=2, progress=False)
    other.join()
    assert states(study) == {"COMPLETED": 2}


def test_a_run_that_waits_for_a_paused_study_ends_with_its_timeout(study: Study) -> None:
    study.pause()
    study.optimize(slow, timeout=0.5, progress=False)
    assert study.trials() == []


def test_a_reported_trial_has_the_metrics_of_its_last_step(study: Study) -> None:
    [trial] = study.ask()
    assert trial.metrics == {}
    assert study.report(trial, step=3, metrics=2.0).metrics == {"seconds": 2.0}
    assert study.report(trial, step=1, metrics=5.0).metrics == {"seconds": 2.0}
    assert study.trial(trial.number).metrics == {"seconds": 2.0}
