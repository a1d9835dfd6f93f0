"""trimtab.ray on a real Ray: what a study hears of Ray Tune's trials, and what becomes of them after a crash."""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ray import ENVIRONMENT, RayHead, ray_head
from tests.factories.service import EmbeddedService
from trimtab.errors import InvalidInput
from trimtab.study import Study

STEPS = 9
SPACE = [trimtab.Float("x", 0, 5)]


class Driver:
    """Runs ray_driver.py."""

    def __init__(self, service: EmbeddedService, head: RayHead, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            **ENVIRONMENT,
            "TRIMTAB_URL": service.grpc_address,
            "TRIMTAB_TOKEN": service.token,
            "RAY_TEST_ADDRESS": head.address,
        }

    def start(self, way: str, study: str, trials: int, **environment: str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(Path(__file__).with_name("ray_driver.py")), way, study, str(self.folder)]
        return subprocess.Popen(
            [*command, str(trials)],
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def runs(self) -> list[tuple[float, int, int]]:
        """Return x, the process id of the worker and the constant of each run of the trainable so far."""
        path = self.folder / "runs"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()


def finish(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Return the driver's output: the last result of each trial."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    results: list[dict[str, Any]] = json.loads(out.splitlines()[-1])
    return results


@pytest.fixture
def driver(embedded_service: EmbeddedService, ray_session: RayHead, tmp_path: Path) -> Driver:
    return Driver(embedded_service, ray_session, tmp_path)


def create(client: trimtab.Client, name: str, **changes: Any) -> Study:
    fields: dict[str, Any] = {"space": SPACE, "objectives": [trimtab.Minimize("loss")], "algorithm": "random"}
    return client.create_study(name, **(fields | changes))


def test_a_tuner_with_asha(client: trimtab.Client, name: str, driver: Driver) -> None:
    """Every way a trial can end, and the budget's end."""
    study = create(client, name, max_trials=9)
    for x in (0.25, 0.5, 0.75, 5.0, 3.0, 2.0, 4.0, 1.0):
        study.enqueue({"x": x})
    driver.open_gate("gate")
    running = driver.start("new", name, 100)
    wait_for(lambda: study.trial(6).measurements or running.poll() is not None)
    study.stop_trial(6, "by a user")
    driver.open_gate("second-gate")
    results = finish(running)
    trials = {trial.params["x"]: study.trial(trial.number) for trial in study.trials()}
    assert len(trials) == 9
    assert all(trial.client_id.startswith("ray-") for trial in trials.values())
    # complete: its last value counts, and the other number that it reported
    assert trials[0.25].state == "COMPLETED"
    assert trials[0.25].metrics == {"loss": 0.25 + 1 / STEPS, "memory": 10.0 * STEPS}
    reported = [(one.step, one.metrics["loss"]) for one in trials[0.25].measurements]
    assert reported == [(step, 0.25 + 1 / step) for step in range(1, STEPS)]
    # given up by ASHA: a bound
    stopped = [trial for trial in trials.values() if "AsyncHyperBand" in trial.reason]
    assert stopped
    assert {trial.state for trial in stopped} == {"PRUNED"}
    assert {len(trial.measurements) for trial in stopped} == {3}
    assert all(trial.metrics["loss"] == float(trial.params["x"]) + 1 / 3 for trial in stopped)
    # ended in the study, and so in Ray
    assert (trials[2.0].state, trials[2.0].reason) == ("PRUNED", "by a user")
    assert [one["training_iteration"] for one in results if one["config"]["x"] == 2.0] == [2]
    # and what went wrong
    assert (trials[5.0].state, trials[5.0].reason) == ("FAILED", "RuntimeError: broken")
    assert (trials[3.0].state, trials[3.0].reason) == ("INFEASIBLE", "x must not be 3")
    assert (trials[4.0].state, trials[4.0].reason) == ("INFEASIBLE", "The metric loss is NaN.")
    assert {constant for _, _, constant in driver.runs()} == {7}
    assert study.refresh().state == "COMPLETED"


@pytest.mark.slow("starts and ends several drivers of Ray")
def test_a_killed_driver_and_a_killed_worker(
    client: trimtab.Client, name: str, driver: Driver, embedded_service: EmbeddedService
) -> None:
    study = create(client, name)
    first = driver.start("new", name, 4, MAX_FAILURES="1")
    # Ray has written down one of its trials at least, and perhaps not all that run
    state = driver.folder / "tuned"
    wait_for(lambda: len(driver.runs()) == 2 or first.poll() is not None)
    wait_for(lambda: has_noted(state))
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert {trial.state for trial in study.trials()} == {"ACTIVE"}
    assert not holds(state, embedded_service.token)
    before = len(driver.runs())
    second = driver.start("restore", name, 4)
    wait_for(lambda: len(driver.runs()) == before + 2 or second.poll() is not None)
    killed, worker, _ = driver.runs()[-1]
    os.kill(worker, signal.SIGKILL)
    driver.open_gate("gate")
    results = finish(second)
    each_counts_once(study, results)
    assert [x for x, _, _ in driver.runs()].count(killed) >= 2


@pytest.mark.slow("starts and ends several drivers of Ray")
def test_ctrl_c_and_a_restored_tuner_count_each_result_once(client: trimtab.Client, name: str, driver: Driver) -> None:
    """Ctrl-C ends the open trials as FAILED. Ray runs them again after it is restored, and their results are added."""
    study = create(client, name)
    first = driver.start("new", name, 4)
    state = driver.folder / "tuned"
    wait_for(lambda: len(driver.runs()) == 2 or first.poll() is not None)
    wait_for(lambda: has_noted(state))
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE)
    interrupted = study.trials()
    assert {trial.state for trial in interrupted} == {"FAILED"}
    assert all(trial.reason.startswith("Ray Tune ended before this trial did") for trial in interrupted)
    driver.open_gate("gate")
    results = finish(driver.start("restore", name, 4))
    counted = [trial for trial in study.trials() if trial.state != "FAILED"]
    assert {trial.state for trial in counted} <= {"COMPLETED", "PRUNED"}
    by_x = {trial.params["x"]: trial.metrics["loss"] for trial in counted}
    assert len(counted) == len(by_x) == len(results) == 4
    assert by_x == {result["config"]["x"]: result["loss"] for result in results}


@pytest.mark.slow("starts and ends several drivers of Ray")
def test_a_ray_head_is_lost_and_started_again(
    client: trimtab.Client, name: str, embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    """The driver ends with it, and so do all workers; the trials that were open are run again."""
    study = create(client, name)
    with ray_head() as head:
        driver = Driver(embedded_service, head, tmp_path)
        # it would wait a minute for the head
        first = driver.start("new", name, 4, RAY_gcs_rpc_server_reconnect_timeout_s="5")
        wait_for(lambda: len(driver.runs()) == 2 or first.poll() is not None)
        state = tmp_path / "tuned"
        wait_for(lambda: has_noted(state))
        head.lose()
        wait_for(lambda: first.poll() is not None)
        assert first.returncode != 0
        first.communicate()
        assert {trial.state for trial in study.trials()} == {"ACTIVE"}
        head.stop()
        head.start()
        second = driver.start("restore", name, 4)
        driver.open_gate("gate")
        each_counts_once(study, finish(second))
    assert len(driver.runs()) > 4


def test_the_end_of_the_tuner_ends_its_trials(client: trimtab.Client, name: str, driver: Driver) -> None:
    """By an error of Ray's, here for a trainable that does not report what the study needs; not by errors of others."""
    study = create(client, name)
    other = study.ask()[0]
    running = driver.start("new", name, 4, METRIC="los")
    driver.open_gate("gate")
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    assert "did not include the specified metric(s) `loss`" in err
    trials = study.trials()
    assert len(trials) > 1
    for trial in trials:
        if trial.number == other.number:
            assert trial.state == "ACTIVE"
        else:
            assert trial.state == "FAILED"
            assert "Ray Tune ended before this trial did: ValueError: Trial returned a result" in trial.reason


def each_counts_once(study: Study, results: list[dict[str, Any]]) -> None:
    """Four trials, of one client, with the values that Ray has of them."""
    trials = study.trials()
    assert [trial.number for trial in trials] == list(range(1, 5))
    assert {trial.state for trial in trials} <= {"COMPLETED", "PRUNED"}
    assert [trial.client_id for trial in trials] == [trials[0].client_id] * 4
    assert Counter(result["config"]["x"] for result in results) == Counter(trial.params["x"] for trial in trials)
    for result in results:
        [trial] = [trial for trial in trials if trial.params["x"] == result["config"]["x"]]
        assert trial.metrics["loss"] == result["loss"]


def has_noted(state: Path) -> bool:
    """Return whether Ray has stored a running trial. It copies its files there and removes the earlier ones."""
    for path in state.glob("searcher-state-*"):
        with suppress(FileNotFoundError, json.JSONDecodeError):
            if json.loads(path.read_text())["open"]:
                return True
    return False


def holds(folder: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


# -- without a Ray


@pytest.fixture
def search(client: trimtab.Client, name: str) -> Any:
    from trimtab.ray import TrimtabSearch

    return TrimtabSearch(create(client, name, max_trials=4))


def result(step: int, loss: float) -> Mapping[str, Any]:
    return {"training_iteration": step, "loss": loss, "time_total_s": 0.5 * step, "config/x": 1.0, "done": False}


def test_unsupported_settings_of_the_tuner_are_refused(search: Any) -> None:
    from ray import tune

    for metric, mode, config, field in (
        ("accuracy", None, {}, "TuneConfig.metric"),
        (None, "max", {}, "TuneConfig.mode"),
        (None, None, {"lr": {"inner": tune.uniform(0, 1)}}, "param_space.lr.inner"),
        (None, None, {"lr": tune.grid_search([1, 2])}, "param_space.lr"),
    ):
        with pytest.raises(trimtab.errors.InvalidInput) as refused:
            search.set_search_properties(metric, mode, config)
        assert refused.value.data["field"] == field


def test_a_scheduler_that_looks_for_the_worst_is_refused(search: Any) -> None:
    from ray.tune.schedulers import ASHAScheduler

    from trimtab.ray import TrimtabScheduler

    with pytest.raises(InvalidInput, match=r"scheduler\.mode.*max.*min"):
        TrimtabScheduler(search, ASHAScheduler(metric="loss", mode="max"))
    TrimtabScheduler(search, ASHAScheduler(metric="memory", mode="max"), metrics=["memory"])
    TrimtabScheduler(search, ASHAScheduler(metric="loss", mode="min"))


def test_a_misspelt_metric_is_found_before_anything_runs(client: trimtab.Client, name: str) -> None:
    from ray.tune.schedulers import ASHAScheduler

    from trimtab.ray import TrimtabScheduler, TrimtabSearch

    search = TrimtabSearch(create(client, name, outcome_constraints=["memory <= 100"]))
    with pytest.raises(InvalidInput) as refused:
        TrimtabScheduler(search, ASHAScheduler(metric="los", mode="min"))
    assert refused.value.data["field"] == "scheduler.metric"
    assert refused.value.data["value"] == "los"
    assert "one of loss, memory;" in str(refused.value.data["allowed"])
    for known in ("memory", "time_total_s"):
        TrimtabScheduler(search, ASHAScheduler(metric=known, mode="min"))
    # the Tuner's, which Ray tells the search only where there are constants
    scheduler = TrimtabScheduler(search, ASHAScheduler())
    for metric, mode, field in (("los", None, "TuneConfig.metric"), (None, "max", "TuneConfig.mode")):
        with pytest.raises(InvalidInput) as refused:
            scheduler.set_search_properties(metric, mode)
        assert refused.value.data["field"] == field
    # and a scheduler that has none has the study's, also when Ray asks again after a crash
    for _ in range(2):
        assert scheduler.set_search_properties(None, None)
        assert scheduler.metric == "loss"
    assert search.study.trials() == []


def test_a_result_that_is_no_number_ends_its_trial_alone(search: Any) -> None:
    from ray.tune.experiment import Trial as RayTrial
    from ray.tune.schedulers import ASHAScheduler, TrialScheduler

    from trimtab.ray import TrimtabScheduler

    scheduler = TrimtabScheduler(search, ASHAScheduler(metric="loss", mode="min", grace_period=1, max_t=8))
    search.suggest("odd")
    odd = RayTrial("odd", trial_id="odd", stub=True)
    scheduler.on_trial_add(None, odd)
    result = {"loss": "much", "training_iteration": 1}
    assert scheduler.on_trial_result(None, odd, result) == TrialScheduler.STOP
    search.on_trial_complete("odd", result)
    assert "no number for loss" in search.study.trials()[-1].reason


def test_a_constant_that_is_a_parameter_holds_for_all(search: Any) -> None:
    assert search.set_search_properties("loss", "min", {"x": 1.5, "other": 1})
    assert search.suggest("a") == {"x": 1.5}


def test_a_search_goes_on_from_any_of_its_states(search: Any, tmp_path: Path) -> None:
    """A result reported since the state was saved is not reported twice, and a trial begun since comes back."""
    from trimtab.ray import TrimtabSearch

    study = search.study
    assert search.suggest("early") is not None
    search.on_trial_result("early", result(1, 2.0))
    search.save(str(tmp_path / "state"))
    search.on_trial_result("early", result(2, 1.0))
    search.on_trial_complete("early", result(3, 0.5))
    late = search.suggest("late")
    again = TrimtabSearch(study)
    again.restore(str(tmp_path / "state"))
    assert again.suggest("new name") == late
    # Ray runs the first one again, which comes out a little differently
    for step, loss in ((1, 2.1), (2, 1.1), (3, 0.6)):
        again.on_trial_result("early", result(step, loss))
    again.on_trial_complete("early", result(3, 0.6))
    again.on_trial_complete("new name", result(1, 3.0))
    assert [trial.metrics for trial in study.trials()] == [{"loss": 0.5}, {"loss": 3.0}]
    assert [dict(one.metrics) for one in study.trial(1).measurements] == [{"loss": 2.0}, {"loss": 1.0}]


def test_a_trial_that_ray_had_not_written_down_comes_back(search: Any, tmp_path: Path) -> None:
    from trimtab.ray import TrimtabSearch

    known, unknown = search.suggest("known"), search.suggest("unknown")
    search.save(str(tmp_path / "state"))
    (tmp_path / "experiment_state-2026-01-01.json").write_text('{"trials": []}')
    (tmp_path / "experiment_state-2026-01-02.json").write_text('{"trials": ["known"]}')
    again = TrimtabSearch(search.study)
    again.restore(str(tmp_path / "state"))
    assert again.suggest("new name") == unknown
    assert again.suggest("other") not in (known, unknown)


def test_an_error_that_ray_runs_again_counts_once_it_works(search: Any, tmp_path: Path) -> None:
    from trimtab.ray import TrimtabSearch

    config = search.suggest("a")
    search.save(str(tmp_path / "state"))
    search.on_trial_complete("a", error=True)
    for _ in range(2):
        again = TrimtabSearch(search.study)
        again.restore(str(tmp_path / "state"))
        again.on_trial_result("a", result(1, 3.0))
        again.on_trial_complete("a", result(2, 2.0))
    failed, added = search.study.trials()
    assert (failed.state, added.state, added.origin) == ("FAILED", "COMPLETED", "added")
    assert (added.params, added.metrics) == (config, {"loss": 2.0})


@pytest.mark.slow("starts and ends several drivers of Ray")
def test_a_restored_tuner_completes_trials_that_were_open_at_the_end(
    search: Any, tmp_path: Path, embedded_service: EmbeddedService
) -> None:
    from trimtab.ray import TrimtabSearch

    configs = {name: search.suggest(name) for name in ("a", "b")}
    search.save(str(tmp_path / "state"))
    # one that Ray has never heard of
    lost = search.study.ask()[0]
    search.on_trial_complete("b", result(1, 1.0))
    search.close("RuntimeError: no space left")
    search.close()
    states = {trial.number: (trial.state, trial.reason) for trial in search.study.trials()}
    reported = ("FAILED", "Ray Tune ended before this trial did: RuntimeError: no space left")
    assert states == {1: reported, 2: ("COMPLETED", ""), lost.number: reported}
    again = TrimtabSearch(search.study)
    again.restore(str(tmp_path / "state"))
    for trial_id, loss in (("a", 2.0), ("b", 1.0)):
        again.on_trial_result(trial_id, result(1, loss))
        again.on_trial_complete(trial_id, result(2, loss))
    added = search.study.trials()[3:]
    assert [(trial.params, trial.metrics, trial.origin) for trial in added] == [(configs["a"], {"loss": 2.0}, "added")]
    # without a word of the user's: the client is closed
    with (
        suppress(MemoryError),
        trimtab.Client(embedded_service.grpc_address, embedded_service.token) as client,
    ):
        assert TrimtabSearch(client.get_study(search.study.name)).suggest("c") is not None
        raise MemoryError("none is left")
    last = search.study.trials()[-1]
    assert (last.state, last.reason.rpartition(": ")[2]) == ("FAILED", "none is left")
    # what comes once the study is over is lost, and harms nothing
    assert search.study.refresh().state == "COMPLETED"
    late = TrimtabSearch(search.study)
    late.restore(str(tmp_path / "state"))
    late.client_id = "another"
    late.on_trial_complete("a", result(2, 5.0))
    assert len(search.study.trials()) == 5


def test_how_trials_end(search: Any) -> None:
    for name in "abcd":
        assert search.suggest(name) is not None
    assert search.suggest("e") == "FINISHED"
    search.on_trial_complete("a")
    search.on_trial_complete("b", {"training_iteration": 1, "done": True})
    search.on_trial_complete("c", result(1, -math.inf))
    search.study.stop_trial(4, "by a user")
    assert search.report("d", result(1, 1.0))
    search.on_trial_complete("d", result(2, 1.0))
    search.on_trial_complete("unknown", result(2, 1.0))
    ends = [(trial.state, trial.reason) for trial in search.study.trials()]
    assert ends == [
        ("FAILED", "Ray's trial a ended without a result"),
        ("FAILED", "Ray's trial b reported no number for loss"),
        ("INFEASIBLE", "The metric loss is negative infinite."),
        ("PRUNED", "by a user"),
    ]


def test_a_report_returns_the_pruning_decision_of_the_study(client: trimtab.Client, name: str) -> None:
    from trimtab.ray import TrimtabSearch

    study = create(client, name, pruning=[trimtab.Policy("limit", seconds=10)])
    search = TrimtabSearch(study)
    search.suggest("a")
    assert not search.report("a", result(20, 1.0))
    assert search.report("a", result(21, 1.0))
    assert study.trial(1).state == "PRUNED"


def test_a_paused_study_is_waited_for(search: Any) -> None:
    search.study.pause()
    assert search.suggest("a") is None
    search.study.resume()
    assert search.suggest("a") is not None


def test_a_search_that_an_earlier_version_has_pickled_is_found_again() -> None:
    from trimtab.ray import TrimtabScheduler, TrimtabSearch

    assert pickle.loads(b"ctrimtab.ray\nTrimtabSearch\n.") is TrimtabSearch
    assert pickle.loads(b"ctrimtab.ray\nTrimtabScheduler\n.") is TrimtabScheduler


def test_only_trimtab_ray_needs_ray(programs_start: None) -> None:
    code = "import sys, trimtab, trimtab.study, trimtab.cli.main; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys; sys.modules['ray'] = None; import trimtab.ray"
    missing = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'trimtab.ray needs Ray Tune: pip install "ray[tune]"' in missing.stderr
