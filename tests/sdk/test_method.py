"""Policies and the final check, as a user of the SDK meets them, against a real service."""

import random
import threading
import time
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE, wait_for
from trimtab._internal.messages.spec import from_spec, to_spec
from trimtab.spec import StudySpec
from trimtab.study import Study

SPACE = [trimtab.Float("x", 0, 1, default=0.9), trimtab.Int("n", 1, 4, default=1)]


def create(client: trimtab.Client, name: str, **changes: Any) -> Study:
    arguments: dict[str, Any] = {"space": SPACE, "objectives": [trimtab.Minimize("seconds")], "algorithm": "random"}
    return client.create_study(name, **(arguments | changes))


def test_policies_are_read_as_they_were_written(client: trimtab.Client, name: str) -> None:
    create(
        client,
        name,
        outcome_constraints=["mb <= 4096"],
        resampling=trimtab.Policy("static", n=3),
        estimator="mean",
        pruning=["default", trimtab.Policy("limit", seconds=60.0)],
        stopping={"any": [{"rule": "trials", "trials": 50}, {"rule": "seconds", "seconds": 3600.0}]},
        final_check=trimtab.FinalCheck(width=0.1, effects=20),
        max_node_hours=2.5,
    )
    spec = client.get_study(name).spec
    assert spec.outcome_constraints == ("mb <= 4096",)
    assert spec.resampling == trimtab.Policy("static", n=3)
    assert spec.estimator is not None
    assert spec.estimator.name == "mean"
    assert [policy.name for policy in spec.pruning] == ["default", "limit"]
    assert spec.pruning[1].options == {"seconds": 60.0}
    assert spec.stopping == {"any": [{"rule": "trials", "trials": 50}, {"rule": "seconds", "seconds": 3600.0}]}
    assert spec.final_check
    assert (spec.final_check.width, spec.final_check.effects) == (0.1, 20)
    assert spec.final_check.max_trials is not None, "the service has completed the options"
    assert spec.max_node_hours == 2.5


def test_a_specification_with_policies_comes_back_as_it_was() -> None:
    spec = StudySpec(
        space=tuple(SPACE),
        objectives=(trimtab.Minimize("seconds"),),
        constraints=(),
        algorithm="gp",
        algorithm_options={},
        seed=0,
        noisy=True,
        max_trials=None,
        max_time=None,
        execution=None,
        max_node_hours=1.5,
        outcome_constraints=("mb <= 1",),
        resampling=trimtab.Policy("thesis", filter=False),
        estimator=trimtab.Policy("quantile", q=0.75),
        pruning=(trimtab.Policy("asha", reduction=4),),
        stopping={"all": [{"rule": "trials", "trials": 5}]},
        final_check=trimtab.FinalCheck(level=0.9),
    )
    assert from_spec(to_spec(spec)) == spec


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"resampling": "often"}, "resampling.name"),
        ({"resampling": 3}, "resampling"),
        ({"resampling": trimtab.Policy("static", n=object())}, "resampling.options"),  # type: ignore[arg-type]
        ({"pruning": ["default", "axe"]}, "pruning[1].name"),
        ({"stopping": {"rule": "never"}}, "stopping.rule"),
        ({"final_check": trimtab.FinalCheck(width=-1)}, "final_check.width"),
        ({"final_check": {"max_trials": 12}}, "final_check"),
        ({"final_check": True, "space": [trimtab.Bool("b")]}, "final_check"),
    ],
)
def test_errors_name_the_wrong_field(client: trimtab.Client, name: str, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        create(client, name, **changes)
    assert caught.value.data["field"] == field


def test_replicates_come_with_their_origin(client: trimtab.Client, name: str) -> None:
    study = create(client, name, resampling=trimtab.Policy("static", n=2), space=[trimtab.Float("x", 0, 1)])
    study.optimize(lambda params: float(params["x"]), n_trials=4, progress=False)
    assert [trial.origin for trial in study.trials()] == ["suggested", "replicate"] * 2


def test_a_trial_that_is_too_slow_should_be_pruned(client: trimtab.Client, name: str) -> None:
    study = create(client, name, pruning=trimtab.Policy("limit", seconds=5))
    [trial] = study.ask()
    steps = []
    for step in range(10):
        trial = study.report(trial, step=step, metrics=2.0 * step, elapsed=2.0 * step)
        steps.append(step)
        if trial.should_prune():
            break
    assert steps == [0, 1, 2, 3]
    assert (trial.state, trial.seconds) == ("PRUNED", 6.0)
    assert "5 s" in trial.reason
    # It is not in hand any more: the next ask gives another one.
    assert study.ask()[0].number == 2


@pytest.mark.parametrize("parallel", [1, 4])
def test_optimize_goes_on_until_the_verdict(client: trimtab.Client, name: str, parallel: int) -> None:
    study = create(client, name, max_trials=12, final_check=True)
    count, guard = 0, threading.Lock()

    def measure(params: trimtab.Params) -> float:
        nonlocal count
        with guard:
            count += 1
            luck = (count % 5) * 0.01
        time.sleep(0.005 * (count % 3))
        return 10 + float(params["x"]) + luck

    assert study.verdict is None
    study.optimize(measure, parallel=parallel, progress=False)
    assert study.refresh().state == "COMPLETED"
    assert study.verdict is not None
    assert study.verdict.proven
    assert study.verdict.gain == pytest.approx(0.05, abs=0.04)
    assert "%" in str(study.verdict)
    assert study.status.search_end_reason
    origins = [trial.origin for trial in study.trials()]
    effects = study.verdict.effects
    assert effects is not None
    assert effects.trials <= 32
    assert {one.name for one in effects.parameters} <= {"x", "n", "mode"}
    assert study.verdict.trials >= 8
    assert origins.count("check") == study.verdict.trials + effects.trials
    assert len(origins) == 12 + origins.count("check")
    found = study.recommendation
    assert found is not None
    assert found.params == study.best_trial.params
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high


def test_a_refusal_that_a_result_has_overtaken_ends_nothing(
    client: trimtab.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create(client, name, max_trials=6, final_check=True)
    ask, refused, begun, guard = study.ask, threading.Event(), 0, threading.Lock()

    def ask_slowly(count: int = 1, **options: Any) -> list[trimtab.Trial]:
        try:
            return ask(count, **options)
        except trimtab.errors.Conflict as conflict:
            if conflict.data.get("open"):
                refused.set()
                # the trials that are awaited end before this is heard
                wait_for(lambda: not study.trials(states=["ACTIVE"]), "they end")
            raise

    def measure(params: trimtab.Params) -> float:
        nonlocal begun
        with guard:
            begun += 1
            last = begun == 6
        if last:
            assert refused.wait(PATIENCE)
        return 10 + float(params["x"])

    monkeypatch.setattr(study, "ask", ask_slowly)
    study.optimize(measure, parallel=4, progress=False)
    assert refused.is_set()
    assert study.refresh().state == "COMPLETED"


def test_there_is_no_recommendation_before_the_first_measurement(client: trimtab.Client, name: str) -> None:
    study = create(client, name)
    assert study.recommendation is None
    assert study.algorithm == "random"


def test_a_costly_algorithm_is_asked_at_the_end_once_more(client: trimtab.Client, name: str) -> None:
    study = create(client, name, algorithm="gp", max_trials=8, final_check=trimtab.FinalCheck(max_trials=8))
    study.optimize(lambda params: 5 + (float(params["x"]) - 0.2) ** 2, progress=False)
    assert study.refresh().state == "COMPLETED"
    assert study.verdict is not None
    assert study.verdict.proven


def test_a_study_that_has_ended_is_checked_and_continued(client: trimtab.Client, name: str) -> None:
    study = create(client, name, max_trials=8)
    count = 0

    def measure(params: trimtab.Params) -> float:
        nonlocal count
        count += 1
        return 10 + float(params["x"]) + (count % 5) * 0.01

    def verdict() -> trimtab.Verdict:
        found = study.verdict
        assert found is not None
        return found

    study.optimize(measure, progress=False)
    assert study.refresh().state == "COMPLETED"
    assert verdict().trials == 0
    study.check(max_trials=12)
    assert study.state == "ACTIVE"
    with pytest.raises(trimtab.errors.Conflict) as refused:
        study.check(max_trials=20)
    assert refused.value.code == "check_under_way"
    study.optimize(measure, progress=False)
    first = verdict()
    assert 8 <= first.trials <= 12
    study.extend_budget(max_trials=11)
    assert study.state == "ACTIVE"
    assert verdict().text == first.text
    study.optimize(measure, progress=False)
    assert study.refresh().reason == "All 11 trials of the budget are done."
    origins = [trial.origin for trial in study.trials()]
    further = [one.effects.trials if one.effects else 0 for one in (first, verdict())]
    assert origins.count("check") == first.trials + verdict().trials + sum(further)
    assert len(origins) == 11 + origins.count("check")
    with pytest.raises(trimtab.errors.InvalidInput) as wrong:
        study.check(width=-1)
    assert wrong.value.data["field"] == "final_check.width"


def test_penalties_of_any_size_do_not_hide_the_best(client: trimtab.Client, name: str) -> None:
    space = [trimtab.Float("x", 0, 1, default=0.2), trimtab.Float("z", 0, 1, default=0.2)]
    study = client.create_study(name, space=space, objectives=[trimtab.Minimize("seconds")])
    numbers = random.Random(7)
    penalties = iter([1e4, 1e9, 1e20, 1e30])
    measured = []
    for place in range(16):
        params = {"x": numbers.random(), "z": numbers.random()}
        value = next(penalties) if place % 4 == 2 else 0.04 + params["x"] ** 2 + params["z"] ** 2 / 10
        study.add_trial(params, {"seconds": value})
        measured.append(value)
    for _ in range(2):
        (trial,) = study.ask()
        measured.append(0.04 + float(trial.params["x"]) ** 2 + float(trial.params["z"]) ** 2 / 10)
        study.tell(trial, {"seconds": measured[-1]})
    assert study.best_trial.metrics["seconds"] <= 1.5 * min(measured)
    assert study.recommendation is not None
    assert min(measured) <= study.recommendation.value <= 2 * min(measured)
    advice = study.penalties
    assert advice is not None
    assert advice.trials == (3, 7, 11, 15)
    assert "4 values look like penalties: report these trials as infeasible." in str(advice)
    (trial,) = study.ask()
    assert eval(advice.call, {"study": study, "trial": trial}).state == "INFEASIBLE"
    assert advice.command == f"trimtab trial fail {name} NUMBER --infeasible --reason 'does not work'"
    for _ in range(2):
        (trial,) = study.ask()
        with pytest.raises(trimtab.errors.InvalidInput, match="from -1e\\+100 to 1e\\+100, or `infeasible`") as caught:
            study.tell(trial, {"seconds": 1e308})
        assert caught.value.code == "metric_too_large"
        study.tell(trial, {"seconds": 1e100})
    assert study.best_trial.metrics["seconds"] <= 1.5 * min(measured)
    assert min(measured) <= study.recommendation.value <= 2 * min(measured)


@pytest.mark.parametrize("algorithm", ["ga", "gp"])
def test_a_search_that_a_rule_ends_repeats_its_best_first(client: trimtab.Client, name: str, algorithm: str) -> None:
    stopping = {"rule": "trials", "trials": 8}
    study = create(client, name, algorithm=algorithm, noisy=True, stopping=stopping, final_check=None)
    numbers = random.Random(1)
    study.optimize(lambda params: params["x"] + 1 + numbers.random() / 10, parallel=3, progress=False)
    assert study.refresh().state == "COMPLETED"
    trials = study.trials()
    assert {trial.state for trial in trials} == {"COMPLETED"}
    origins = [trial.origin for trial in trials]
    first = origins.index("replicate")
    assert first >= 8
    assert set(origins[first:]) == {"replicate"}
    assert 3 <= len(origins) - first <= 12
