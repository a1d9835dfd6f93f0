"""Trials in trackers of experiments."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService, lack
from tests.sdk.conftest import make_study
from trimtab.errors import InvalidInput
from trimtab.integrations.trial_logger import TrialLogger, identity, steps
from trimtab.study import Study
from trimtab.trial import Trial, TrialState

SDK = Path(trimtab.__file__).parent.parent
# The packages of each tracker, and those of the SDK.
PACKAGES = {"mlflow": ["mlflow-skinny>=3", "sqlalchemy", "alembic"], "wandb": ["wandb>=0.20"]}
NEEDED = ["grpcio", "protobuf", "googleapis-common-protos", "typer", "rich"]


class Kept(TrialLogger):
    """A tracker in memory."""

    def __init__(self, console: str = "http://127.0.0.1:8470/") -> None:
        super().__init__(console)
        self.trials: dict[int, dict[str, str]] = {}

    def log(self, study: Study, trial: Trial) -> None:
        self.trials[trial.number] = self._facts(study, trial)


def test_a_logger_is_a_callback_of_optimize_and_follows_a_study(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, max_trials=3)
    logger = Kept()
    answers: Iterator[float | trimtab.Infeasible] = iter([1.0, trimtab.Infeasible("does not compile"), 2.0])

    def measure(_params: dict[str, Any]) -> float:
        answer = next(answers)
        if isinstance(answer, trimtab.Infeasible):
            raise answer
        return answer

    study.optimize(measure, progress=False, callbacks=[logger])
    assert [facts["state"] for facts in logger.trials.values()] == ["COMPLETED", "INFEASIBLE", "COMPLETED"]
    assert {number: facts["state"] for number, facts in logger.trials.items()} == {
        trial.number: trial.state for trial in study.trials()
    }
    first = study.trials()[0].number
    assert logger.trials[first]["url"] == f"http://127.0.0.1:8470/studies/{name}/trials/{first}"
    follower = Kept()
    follower.follow(study)
    assert follower.trials == logger.trials


def test_an_error_of_a_callback_ends_the_run_and_leaves_no_trial_open(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, max_trials=5)

    def refuse(_study: Study, trial: Trial) -> None:
        raise ConnectionError(f"no tracker for trial {trial.number}")

    with pytest.raises(ConnectionError, match="no tracker for trial"):
        study.optimize(lambda _: 1.0, progress=False, parallel=2, callbacks=[refuse])
    assert 1 <= len(study.trials()) < 5
    assert all(trial.state is TrialState.COMPLETED for trial in study.trials())


def test_a_later_study_of_the_same_name_is_another_one(client: trimtab.Client, name: str) -> None:
    first = identity(make_study(client, name))
    client.delete_study(name)
    assert identity(make_study(client, name)) != first


def test_the_address_of_the_console_is_checked() -> None:
    with pytest.raises(InvalidInput, match="the console's address"):
        Kept("tune.example.org")


@pytest.mark.parametrize(("module", "package"), [("mlflow", "mlflow-skinny"), ("wandb", "wandb")])
def test_a_missing_package_is_named(module: str, package: str, programs_start: None) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import trimtab.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install {package}" in done.stderr.splitlines()[-1]


@pytest.fixture
def finished(client: trimtab.Client, name: str) -> Study:
    """A study with a trial of several steps, an infeasible one and a failed one."""
    study = make_study(client, name, max_trials=3)
    several, infeasible, failed = study.ask(3)
    study.report(several, step=1, metrics={"seconds": 3.0})
    study.report(several, step=5, metrics={"seconds": 2.5})
    study.tell(several, {"seconds": 2.0, "memory": 8.0})
    study.tell(infeasible, infeasible="does not compile")
    study.tell(failed, failed="the node is gone")
    assert study.refresh().state.finished
    return study


def test_a_trial_has_the_metrics_of_all_its_steps(finished: Study) -> None:
    first, infeasible, _ = finished.trials()
    assert steps(finished, first) == {1: {"seconds": 3.0}, 5: {"seconds": 2.5}, 6: {"seconds": 2.0, "memory": 8.0}}
    assert steps(finished, infeasible) == {}


def copy(tracker: str, study: Study, service: EmbeddedService, folder: Path) -> Any:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:.cache/uv/bin:/usr/local/bin:/usr/bin")
    if uv is None:
        lack(f"uv is not installed, which makes an environment for {tracker}")
    command = [uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable]
    for package in (*PACKAGES[tracker], *NEEDED):
        command += ["--with", package]
    suite = Path(__file__).with_name("tracker_suite.py")
    login = {"TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token, "PYTHONPATH": str(SDK)}
    done = subprocess.run(
        [*command, "python", str(suite), tracker, study.name, str(folder)],
        env={**os.environ, **login},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow("installs the tracker into an environment of its own")
def test_mlflow_has_each_trial_once(finished: Study, embedded_service: EmbeddedService, tmp_path: Path) -> None:
    copied = copy("mlflow", finished, embedded_service, tmp_path)
    assert copied["again"] == copied["first"], "a restart completes a run, and copies nothing twice"
    runs = {run["tags"]["trimtab.trial"]: run for run in copied["first"]}
    trials = finished.trials()
    assert sorted(runs) == sorted(str(trial.number) for trial in trials)
    assert [runs[str(trial.number)]["status"] for trial in trials] == ["FINISHED", "FAILED", "FAILED"]
    for trial in trials:
        run = runs[str(trial.number)]
        assert run["params"] == {name: str(value) for name, value in trial.params.items()}
        assert run["tags"]["trimtab.state"] == trial.state
        assert run["tags"].get("trimtab.reason", "") == trial.reason
        assert run["tags"]["trimtab.url"].endswith(f"/studies/{finished.name}/trials/{trial.number}")
        expected = {
            name: [[step, values[name]] for step, values in steps(finished, trial).items() if name in values]
            for name in trial.metrics
        }
        assert run["metrics"] == expected
    assert len(runs[str(trials[0].number)]["metrics"]["seconds"]) == 3


@pytest.mark.slow("installs the tracker into an environment of its own")
def test_wandb_has_each_trial_once(finished: Study, embedded_service: EmbeddedService, tmp_path: Path) -> None:
    runs = {run["name"]: run for run in copy("wandb", finished, embedded_service, tmp_path)}
    trials = finished.trials()
    assert sorted(runs) == sorted(f"{finished.name}-{trial.number}" for trial in trials)
    for trial, code in zip(trials, (0, 1, 1), strict=True):
        run = runs[f"{finished.name}-{trial.number}"]
        assert run["complete"]
        assert (run["exit"], run["group"], run["params"]) == (code, finished.name, dict(trial.params))
        assert run["summary"]["trimtab/state"] == trial.state
        assert run["summary"]["trimtab/url"].endswith(f"/studies/{finished.name}/trials/{trial.number}")
        assert [{"_step": step, **values} for step, values in steps(finished, trial).items()] == run["history"]
