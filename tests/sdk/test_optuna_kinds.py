"""Define-by-run scripts of each kind: the trials in Optuna's storage and those in the study, field by field."""

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna
import pytest

import trimtab
from trimtab.integrations.foreign_names import parameter_name
from trimtab.integrations.optuna import values as values_of
from trimtab.optuna import TrimtabSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)

STATES = {"COMPLETE": "COMPLETED", "FAIL": "FAILED", "PRUNED": "PRUNED"}


def mixed(trial: optuna.Trial) -> float:
    value = trial.suggest_float("x", -4, 4) ** 2 + trial.suggest_int("n", 0, 8, step=2)
    value += trial.suggest_float("share", 0.1, 0.7, step=0.2) + trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    choices: list[Any] = ["a", "b", None]
    value += choices.index(trial.suggest_categorical("with space", choices))
    return value + float(trial.suggest_categorical("flag", [True, False]))


def conditional(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["svm", "forest"]) == "svm":
        return trial.suggest_float("cost", 1e-3, 10, log=True)
    return float(trial.suggest_int("depth", 1, 9))


def nested(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["svm", "forest", "mlp"])
    if kind == "svm":
        gamma = (
            trial.suggest_float("gamma", 0, 1) if trial.suggest_categorical("kernel", ["rbf", "linear"]) == "rbf" else 0
        )
        return gamma + trial.suggest_float("cost", 1e-3, 10, log=True)
    if kind == "forest":
        return float(trial.suggest_int("depth", 1, 9))
    return float(
        sum(trial.suggest_int(f"width_{i}", 4, 64, log=True) for i in range(trial.suggest_int("layers", 1, 3)))
    )


def on_a_number(trial: optuna.Trial) -> float:
    """No condition on the value of one parameter explains this one."""
    x = trial.suggest_float("x", 0, 1)
    return x if x < 0.5 else x + trial.suggest_int("extra", 1, 4)


def pruned(trial: optuna.Trial) -> float:
    value = trial.suggest_float("x", 0, 1)
    for step in range(4):
        trial.report(value + 3 - step, step)
        if trial.number % 3 == 1 and step == 2:
            raise optuna.TrialPruned
    return value + trial.suggest_float("late", 0, 1)


def several(trial: optuna.Trial) -> tuple[float, float]:
    return trial.suggest_float("x", 0, 1), conditional(trial)


def constrained(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    trial.set_constraint("memory", 0.5 - x)
    return x


def moving(trial: optuna.Trial) -> float:
    even = trial.number % 2 == 0
    n = trial.suggest_int("n", 1, 9, step=2) if even else trial.suggest_int("n", 0, 10, step=2)
    return (
        n
        + trial.suggest_float("x", 0, 1 + trial.number % 3)
        + trial.suggest_float("s", 0, 1, step=0.5 if even else 0.25)
    )


def single(trial: optuna.Trial) -> float:
    value = trial.suggest_int("a", 3, 3) + trial.suggest_float("f", 1.0, 1.0)
    trial.suggest_categorical("only", ["one"])
    return value + (trial.suggest_float("x", 0, 1) if trial.number > 3 else 0)


def failing(trial: optuna.Trial) -> float:
    if trial.number % 4 == 3:
        raise RuntimeError("before anything")
    x = trial.suggest_float("x", 0, 1)
    if trial.number % 4 == 1:
        raise ValueError("broken pipe")
    return float("nan") if trial.number % 4 == 2 else x


class Script(NamedTuple):
    objective: Callable[[optuna.Trial], Any]
    trials: int = 12
    directions: tuple[Any, ...] = ("minimize",)
    n_jobs: int = 1


SCRIPTS = {
    "mixed": Script(mixed),
    "conditional": Script(conditional),
    "nested": Script(nested, trials=30),
    "on a number": Script(on_a_number),
    "pruned": Script(pruned),
    "jobs": Script(nested, trials=30, n_jobs=3),
    "several": Script(several, directions=("minimize", "maximize")),
    "constrained": Script(constrained),
    "moving": Script(moving),
    "single": Script(single, trials=8),
    "failing": Script(failing),
}


def tuned(client: trimtab.Client, name: str, script: Script, **given: Any) -> tuple[optuna.Study, trimtab.Study]:
    sampler = TrimtabSampler(client, **{"algorithm": "random", "seed": 0, **given})
    study = optuna.create_study(study_name=name, directions=script.directions, sampler=sampler)
    study.optimize(script.objective, n_trials=script.trials, n_jobs=script.n_jobs, catch=(Exception,))
    return study, sampler.trimtab_study(study)


def expect_equal(study: optuna.Study, own: trimtab.Study) -> None:
    """Fail unless each trial of Optuna is one trial of the study, with equal fields."""
    trials = {trial.number: trial for trial in own.trials()}
    assert len(trials) == len(study.trials)
    metrics = [objective.metric for objective in own.objectives]
    for theirs in study.trials:
        ours = own.trial(trials.pop(theirs.system_attrs["trimtab:trial"]).number)
        assert ours.state == STATES[theirs.state.name]
        assert {name: repr(value) for name, value in ours.params.items()} == {
            parameter_name(name): repr(values_of.encode(distribution, theirs.params[name]))
            for name, distribution in theirs.distributions.items()
        }
        steps = {one.step: one.metrics[metrics[0]] for one in ours.measurements}
        assert steps == theirs.intermediate_values
        if theirs.state.name != "FAIL":
            assert [ours.metrics[name] for name in metrics] == theirs.values
        assert {name: ours.metrics[f"constraint_{name}"] for name in theirs.constraints} == theirs.constraints


@pytest.mark.parametrize("kind", SCRIPTS)
def test_trials_are_equal_field_by_field(client: trimtab.Client, name: str, kind: str) -> None:
    study, own = tuned(client, name, SCRIPTS[kind])
    expect_equal(study, own)
    # What is recommended was measured.
    configurations = [trial.params for trial in own.trials()]
    for best in own.best_trials:
        assert best.params in configurations
    if own.recommendation is not None:
        assert own.recommendation.params in configurations


def test_conditions_follow_from_the_trials(client: trimtab.Client, name: str) -> None:
    _, own = tuned(client, name, Script(nested, trials=60))
    own.refresh()
    assert {parameter.name: parameter.when for parameter in own.spec.space} == {
        "kind": None,
        "cost": ("kind", ("svm",)),
        "kernel": ("kind", ("svm",)),
        "gamma": ("kernel", ("rbf",)),
        "depth": ("kind", ("forest",)),
        "layers": ("kind", ("mlp",)),
        "width_0": ("kind", ("mlp",)),
        "width_1": ("layers", (2, 3)),
        "width_2": ("layers", (3,)),
    }
    # So a suggestion has no values that its trial does not need.
    for trial in own.ask(10):
        assert ("cost" in trial.params) == (trial.params["kind"] == "svm")


def test_a_condition_that_a_trial_contradicts_is_given_up(client: trimtab.Client, name: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", 0, 1) if kind == "a" or trial.number > 10 else 1.0

    study, own = tuned(client, name, Script(objective, trials=10))
    own.refresh()
    assert own.spec.space[-1].when == ("kind", ("a",))
    study.optimize(objective, n_trials=12)
    own.refresh()
    assert [parameter.when for parameter in own.spec.space] == [None, None]
    expect_equal(study, own)


@pytest.mark.slow("gp takes seconds for each suggestion; random shows the same")
def test_gp_learns_from_trials_with_different_parameters(client: trimtab.Client, name: str) -> None:
    study, own = tuned(client, name, Script(nested, trials=25), algorithm="gp")
    expect_equal(study, own)
    assert own.best_trial.params["kind"] == "svm"


def test_exceptions_and_user_attributes_reach_the_study(client: trimtab.Client, name: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 1.5)
        trial.set_user_attr("host", "node1")
        trial.set_user_attr("sizes", [1, 2])
        trial.report(1.0, 0)
        if trial.number == 2:
            raise optuna.TrialPruned
        return failing(trial)

    _, own = tuned(client, name, Script(objective, trials=8))
    trials = own.trials()
    assert Counter(trial.reason for trial in trials if trial.state == "FAILED") == {
        "ValueError: broken pipe": 2,
        "RuntimeError: before anything": 2,
        "The value nan is not acceptable": 1,
    }
    assert {note.trial for note in own.notes()} == {trial.number for trial in trials}
    assert all(
        note.attributes == {"seconds": 1.5, "host": "node1", "sizes": "[1, 2]"} for note in own.notes() if note.trial
    )
    kept = [trial.metrics.get("attr.seconds") for trial in trials if trial.state in ("COMPLETED", "PRUNED")]
    assert kept == [1.5, 1.5, 1.5]


def test_a_storage_with_pruned_trials_continues_with_all_of_them(client: trimtab.Client, name: str) -> None:
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(pruned, n_trials=9)
    study.optimize(failing, n_trials=4, catch=(Exception,))
    study.sampler = TrimtabSampler(client, algorithm="random", seed=0)
    study.optimize(pruned, n_trials=3)
    own = study.sampler.trimtab_study(study)
    assert Counter(str(trial.state) for trial in own.trials()) == Counter(
        STATES[trial.state.name] for trial in study.trials
    )
    theirs = [trial.params for trial in study.trials]
    assert sorted(map(repr, theirs)) == sorted(repr(trial.params) for trial in own.trials())
    [first, *_] = [trial for trial in own.trials() if trial.state == "PRUNED"]
    assert {one.step: one.metrics["value"] for one in own.trial(first.number).measurements} == (
        study.trials[1].intermediate_values
    )


def test_a_sampler_is_pickled_and_copied_without_its_token(client: trimtab.Client, name: str) -> None:
    study, own = tuned(client, name, Script(conditional, trials=4))
    data = pickle.dumps(study)
    assert b"token" not in data
    for again in (pickle.loads(data), copy.deepcopy(study)):
        before = len(own.trials())
        again.optimize(conditional, n_trials=2)
        assert len(own.trials()) == before + 2


def test_an_unusable_result_leaves_no_trial_open(
    client: trimtab.Client, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study, own = tuned(client, name, Script(conditional, trials=2))

    def refuse(*_: object, **__: object) -> None:
        raise trimtab.errors.InvalidInput("invalid_argument", "too strange")

    with monkeypatch.context() as patch:
        patch.setattr(trimtab.Study, "tell", refuse)
        study.optimize(conditional, n_trials=1)
    [_, _, last] = own.trials()
    assert (last.state, last.reason) == ("PRUNED", "The study cannot use the result: too strange")
    assert "the study cannot use a trial of Optuna" in caplog.text
