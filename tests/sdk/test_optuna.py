"""trimtab.optuna with a real Optuna and a real service."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from trimtab.errors import Conflict, NotFound
from trimtab.integrations.optuna import values as values_of
from trimtab.optuna import TrimtabSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)


def quadratic(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -4, 4)
    return (x - 1) ** 2 + trial.suggest_int("n", 0, 8, step=2)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'optuna.db'}"


@pytest.fixture
def start(client: trimtab.Client, storage: str, name: str) -> Callable[..., optuna.Study]:
    """Return a function that creates or loads the test's Optuna study with a sampler, as a new process would."""

    def make(
        directions: Sequence[Literal["minimize", "maximize"]] = ("minimize",), pruner: Any = None, **settings: Any
    ) -> optuna.Study:
        given: dict[str, Any] = {"algorithm": "random", "seed": 0} | settings
        sampler = TrimtabSampler(client, **given)
        return optuna.create_study(
            storage=storage, sampler=sampler, pruner=pruner, study_name=name, directions=directions, load_if_exists=True
        )

    return make


def known_study(study: optuna.Study) -> trimtab.Study:
    assert isinstance(study.sampler, TrimtabSampler)
    return study.sampler.trimtab_study(study)


def trials_of(study: optuna.Study) -> list[trimtab.Trial]:
    return known_study(study).trials()


def test_every_trial_of_optuna_is_a_trial_of_the_study(start: Callable[..., optuna.Study]) -> None:
    study = start()
    study.optimize(quadratic, n_trials=6)
    trials = trials_of(study)
    assert [trial.metrics["value"] for trial in trials] == pytest.approx([trial.value for trial in study.trials])
    assert [trial.params for trial in trials] == [trial.params for trial in study.trials]
    assert [trial.origin for trial in trials] == ["added"] + ["suggested"] * 5


def test_a_study_in_memory(client: trimtab.Client) -> None:
    study = optuna.create_study(sampler=TrimtabSampler(client, algorithm="random"))
    study.optimize(quadratic, n_trials=4)
    assert [trial.metrics["value"] for trial in trials_of(study)] == pytest.approx(
        [trial.value for trial in study.trials]
    )


def test_a_study_of_another_sampler_continues_and_a_restart_doubles_nothing(
    start: Callable[..., optuna.Study], storage: str, name: str
) -> None:
    first = optuna.create_study(storage=storage, study_name=name, sampler=optuna.samplers.RandomSampler(seed=1))
    first.optimize(quadratic, n_trials=3)
    for total in (5, 7):
        study = start()
        study.optimize(quadratic, n_trials=2)
        assert Counter(trial.origin for trial in trials_of(study)) == {"added": 3, "suggested": total - 3}
    start().enqueue_trial({"x": 1.0, "n": 0})
    study = start()
    study.optimize(quadratic, n_trials=2)
    assert Counter(trial.origin for trial in trials_of(study)) == {"added": 4, "suggested": 5}
    assert sorted(trial.metrics["value"] for trial in trials_of(study)) == sorted(
        trial.values[0] for trial in study.trials
    )


def test_a_result_that_did_not_reach_the_service_is_told_by_the_next_process(
    start: Callable[..., optuna.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start()
    study.optimize(quadratic, n_trials=2)
    with monkeypatch.context() as patch:
        patch.setattr(trimtab.Study, "tell", lambda *_, **__: (_ for _ in ()).throw(Conflict("lost", "lost")))
        with pytest.raises(Conflict):
            study.optimize(quadratic, n_trials=1)
    assert [trial.state for trial in trials_of(study)] == ["COMPLETED", "COMPLETED", "ACTIVE"]
    again = start()
    assert [trial.state for trial in trials_of(again)] == ["COMPLETED"] * 3
    assert trials_of(again)[2].metrics["value"] == again.trials[2].value


def test_pruned_and_failed_trials(start: Callable[..., optuna.Study]) -> None:
    def objective(trial: optuna.Trial) -> float:
        value = quadratic(trial)
        if trial.number == 2:
            raise ValueError("broken")
        if trial.number == 3:
            return float("inf")
        for step in range(4):
            trial.report(value + 3 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = start(pruner=optuna.pruners.ThresholdPruner(upper=0.0, n_warmup_steps=2))
    study.optimize(objective, n_trials=1, catch=(ValueError,))
    assert study.trials[0].state.name == "PRUNED"
    study = start(pruner=optuna.pruners.NopPruner())
    study.optimize(objective, n_trials=4, catch=(ValueError,))
    study.pruner = optuna.pruners.ThresholdPruner(upper=-1.0, n_warmup_steps=2)
    study.optimize(objective, n_trials=1)
    by_state = {trial.state: trial for trial in trials_of(study)}
    states = [trial.state for trial in trials_of(study)]
    assert states == ["PRUNED", "COMPLETED", "FAILED", "INFEASIBLE", "COMPLETED", "PRUNED"]
    pruned = known_study(study).trial(by_state[trimtab.TrialState.PRUNED].number)
    told = {one.step: one.metrics["value"] for one in pruned.measurements}
    assert told == pytest.approx(study.trials[5].intermediate_values)
    assert len(told) == 3
    assert by_state[trimtab.TrialState.INFEASIBLE].reason == "The objective returned [inf]."


def test_a_space_that_grows(start: Callable[..., optuna.Study]) -> None:
    def objective(trial: optuna.Trial) -> float:
        low = trial.suggest_float("x", 0, 1 if trial.number < 3 else 2)
        kind = trial.suggest_categorical("kind", [None, "svm", True])
        if kind == "svm":
            low += trial.suggest_float("svm cost", 1e-3, 10, log=True)
        elif trial.number > 3:
            low += trial.suggest_int("depth", 1, 9)
        return low

    study = start()
    study.optimize(objective, n_trials=12)
    known = known_study(study)
    known.refresh()
    space: dict[str, Any] = {parameter.name: parameter for parameter in known.spec.space}
    assert space["x"].max == 2
    assert space["kind"].values == ("None", "svm", "True")
    assert "depth" in space
    told = [trial for trial in known.trials() if trial.state == "COMPLETED"]
    assert sorted(trial.metrics["value"] for trial in told) == pytest.approx(
        sorted(trial.values[0] for trial in study.trials)
    )
    # A result counts for the values that were measured.
    for trial in told:
        values = trial.params
        cost = next((value for key, value in values.items() if key.startswith("p-svm_cost")), 0.0)
        assert (cost > 0) == (values["kind"] == "svm")
        assert trial.metrics["value"] == pytest.approx(values["x"] + cost + values.get("depth", 0))


def test_several_objectives_with_names(start: Callable[..., optuna.Study]) -> None:
    study = start(["minimize", "maximize"])
    study.set_metric_names(["time of run", "rate"])
    study.optimize(lambda trial: (quadratic(trial), trial.suggest_float("z", 0, 1)), n_trials=4)
    known = known_study(study)
    assert [type(one).__name__ for one in known.objectives] == ["Minimize", "Maximize"]
    assert [one.metric for one in known.objectives][1] == "rate"
    front = {tuple(trial.metrics[one.metric] for one in known.objectives) for trial in known.pareto_front()}
    assert front == {tuple(trial.values) for trial in study.best_trials}


@pytest.mark.parametrize("own", [True, False])
def test_constraints_decide_what_is_best(start: Callable[..., optuna.Study], own: bool) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if own:
            trial.set_constraint("memory", 0.5 - x)
        return x

    study = start(constraints_func=None if own else lambda trial: [0.5 - trial.params["x"]])
    study.optimize(objective, n_trials=10)
    known = known_study(study)
    assert len(known.spec.outcome_constraints) == 1
    allowed = [trial for trial in study.trials if trial.params["x"] >= 0.5]
    assert allowed
    assert known.best_trial.params["x"] == min(trial.params["x"] for trial in allowed)


def test_another_study_of_the_name_is_not_taken(start: Callable[..., optuna.Study], client: trimtab.Client) -> None:
    study = start()
    with pytest.raises(NotFound, match="has no completed trial yet"):
        known_study(study)
    client.create_study(study.study_name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("value")])
    with pytest.raises(Conflict, match="Give the sampler another name"):
        study.optimize(quadratic, n_trials=1)


SCRIPT = """
import sys
import optuna
import trimtab
from tests.sdk.test_optuna import quadratic
from trimtab.optuna import TrimtabSampler

sampler = TrimtabSampler(trimtab.Client(sys.argv[1], sys.argv[2]), algorithm="random", seed=0)
study = optuna.create_study(study_name=sys.argv[3], storage=sys.argv[4], sampler=sampler, load_if_exists=True)
study.optimize(quadratic, n_trials=6, n_jobs=2)
"""


def test_several_processes_with_threads_share_a_study(
    start: Callable[..., optuna.Study], embedded_service: EmbeddedService, storage: str, name: str
) -> None:
    study = start()  # creates the tables of the storage
    arguments = [embedded_service.grpc_address, embedded_service.token, name, storage]
    programs = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for program in programs:
        _, errors = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0, errors
    trials = trials_of(study)
    assert len(trials) == 12
    values = sorted(trial.values[0] for trial in study.trials)
    assert sorted(trial.metrics["value"] for trial in trials) == pytest.approx(values)


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (CategoricalDistribution([True, False]), False),
        (CategoricalDistribution([None, "None", 3]), None),
        (CategoricalDistribution([4, 2, 8]), 2),
        (FloatDistribution(0.1, 0.7, step=0.2), 0.5),
        (IntDistribution(1, 64, log=True), 17),
    ],
)
def test_values_go_there_and_back(distribution: BaseDistribution, value: object) -> None:
    back = values_of.decode(distribution, values_of.encode(distribution, value))
    assert (type(back), back) == (type(value), value)
    parameter = values_of.to_parameter("a b", distribution)
    assert parameter.name.startswith("p-a_b-")


# -- import


def command(service: EmbeddedService, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-m", "trimtab.cli.main", "import", "optuna", *arguments]
    code = "import sys; from trimtab.cli.main import app; app(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", code, *program[3:]],
        env={"TRIMTAB_URL": service.grpc_address, "TRIMTAB_TOKEN": service.token, "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_import_of_a_storage(
    client: trimtab.Client, embedded_service: EmbeddedService, storage: str, name: str
) -> None:
    def objective(trial: optuna.Trial) -> float:
        value = quadratic(trial)
        trial.set_user_attr("seconds", 1.5)
        trial.set_user_attr("host", "node1")
        if trial.number == 1:
            raise ValueError
        for step in range(3):
            trial.report(value + step, step)
        if trial.number == 2:
            raise optuna.TrialPruned
        return value + trial.suggest_float("late", 0, 1) * (trial.number > 3)

    study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
    study.set_user_attr("owner", "Ada")
    study.optimize(objective, n_trials=5, catch=(ValueError,))
    study.ask()
    first = command(embedded_service, storage, "--json")
    assert first.returncode == 0, first.stderr
    [told] = json.loads(first.stdout)
    assert (told["trials"], told["added"]) == ({"COMPLETED": 3, "FAILED": 1, "PRUNED": 1}, 5)
    assert "1 trials that are RUNNING are left out" in told["remarks"]
    known = client.get_study(name)
    assert known.state == "COMPLETED"
    assert "Ada" in known.spec.description
    for trial, before in zip(known.trials(), study.trials, strict=False):
        assert trial.params == before.params
        if trial.state == "COMPLETED":
            assert trial.metrics == {"value": before.value, "attr.seconds": 1.5}
    # A failed trial has no metrics, and the note of each has its attributes.
    assert known.trial(3).metrics["attr.seconds"] == 1.5
    assert [note.attributes for note in known.notes() if note.trial] == [{"seconds": 1.5, "host": "node1"}] * 5
    assert {one.step: one.metrics["value"] for one in known.trial(3).measurements} == study.trials[
        2
    ].intermediate_values
    [again] = json.loads(command(embedded_service, storage, "--study", name, "--json").stdout)
    assert (again["trials"], again["added"]) == (told["trials"], 0)


def test_an_import_only_reads_the_file(embedded_service: EmbeddedService, tmp_path: Path, name: str) -> None:
    """Optuna itself would create missing tables and note its version. The file is the same, byte for byte."""
    path = tmp_path / "store d.db"
    optuna.create_study(storage=f"sqlite:///{path}", study_name=name).optimize(quadratic, n_trials=2)
    changes = ("", "DROP TABLE alembic_version", "DROP TABLE trial_heartbeats", "PRAGMA journal_mode = WAL")
    for number, change in enumerate(changes):
        with closing(sqlite3.connect(path)) as database:
            database.executescript(change)
        before = path.read_bytes()
        told = command(embedded_service, f"sqlite:///{path}", "--prefix", f"{number}-")
        assert told.returncode == 0, told.stderr
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["store d.db"]


def test_an_import_upgrades_a_copy_of_an_earlier_storage(
    client: trimtab.Client, embedded_service: EmbeddedService, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "old.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    optuna.create_study(storage=storage, study_name=name).optimize(quadratic, n_trials=2)
    versions = storage.get_all_versions()
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (versions[1],))
        database.commit()
    assert storage.get_current_version() != storage.get_head_version()
    before = path.read_bytes()
    told = command(embedded_service, f"sqlite:///{path}")
    assert told.returncode == 0, told.stderr
    assert path.read_bytes() == before
    assert len(client.get_study(name).trials()) == 2


def test_constraints_of_optuna_4_are_imported(
    client: trimtab.Client, embedded_service: EmbeddedService, storage: str, name: str
) -> None:
    study = optuna.create_study(storage=storage, study_name=name)
    for x in (0.25, 0.75):
        trial = study.ask()
        trial.suggest_float("x", x, x)
        trial.storage.set_trial_system_attr(trial._trial_id, "constraints", [0.5 - x, -1.0])
        study.tell(trial, x)
    assert command(embedded_service, storage).returncode == 0
    own = client.get_study(name)
    assert own.spec.outcome_constraints == ("`constraint_0` <= 0", "`constraint_1` <= 0")
    assert own.best_trial.params == {"x": 0.75}


def test_a_study_that_cannot_be_imported_is_named_and_the_others_are_imported(
    client: trimtab.Client, embedded_service: EmbeddedService, storage: str, name: str
) -> None:
    names = [f"{name}-{which}" for which in ("taken", "broken", "good")]
    for one in names:
        optuna.create_study(storage=storage, study_name=one).optimize(quadratic, n_trials=2)
    client.create_study(names[0], [trimtab.Float("x", 0, 1)], [trimtab.Minimize("value")])
    with closing(sqlite3.connect(storage.removeprefix("sqlite:///"))) as database:
        database.execute("UPDATE trial_params SET distribution_json = '{}' WHERE trial_id = 3")
        database.commit()
    told = command(embedded_service, storage)
    assert told.returncode == 1
    assert f"{names[0]}: not imported: Study {names[0]} exists" in told.stderr
    assert f"{names[1]}: not imported: Optuna cannot read it" in told.stderr
    assert f"{names[2]}: study {names[2]} has 2 COMPLETED; 2 are new." in told.stderr
    listed = json.loads(command(embedded_service, storage, "--json").stdout)
    assert [bool(one["error"]) for one in listed] == [True, True, False]


def test_a_file_that_is_no_storage_is_refused_and_stays_the_same(
    embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    other, text, empty = tmp_path / "other.db", tmp_path / "text.db", tmp_path / "empty.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    text.write_text("no database " * 100)
    empty.touch()
    for path in (other, text, empty):
        before = path.read_bytes()
        told = command(embedded_service, f"sqlite:///{path}")
        assert (told.returncode, "readable Optuna storage" in told.stderr) == (1, True)
        assert path.read_bytes() == before
    assert "is it certain that nothing is written" in command(embedded_service, "oracle://me@host/db").stderr


def test_import_of_what_does_not_exist(embedded_service: EmbeddedService, storage: str, tmp_path: Path) -> None:
    optuna.create_study(storage=storage, study_name="empty")
    assert "it has none" not in command(embedded_service, storage, "--study", "other").stderr
    assert "one of the storage's studies: empty" in command(embedded_service, storage, "--study", "other").stderr
    assert "nothing was imported" in command(embedded_service, storage).stderr
    missing = command(embedded_service, f"sqlite:///{tmp_path / 'none' / 'x.db'}")
    assert missing.returncode == 1
    assert "readable Optuna storage" in missing.stderr
