"""Predictions of a model: the order of configurations, and the measurement of the best one in a real study."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import trimtab
from tests.sdk.conftest import make_study
from trimtab import predictions
from trimtab.errors import InvalidInput
from trimtab.space import Parameter
from trimtab.spec import StudySpec
from trimtab.study import Study


def with_space(study: Study, space: Sequence[Parameter]) -> StudySpec:
    return replace(study.spec, space=tuple(space))


def test_a_small_space_is_listed_whole_and_ranked(study: Study) -> None:
    spec = with_space(
        study,
        [
            trimtab.Int("threads", 1, 8, factor=2),
            trimtab.Categorical("pool", ["none", "fixed"]),
            trimtab.Float("share", 0.0, 1.0, step=0.5, when=("pool", ["fixed"])),
        ],
    )
    found = predictions.ranked(spec, lambda one, _: abs(one["threads"] - 4) + one.get("share", 0.2))
    assert len(found) == 4 * (1 + 3)
    assert found[0] == {"threads": 4, "pool": "fixed", "share": 0.0}
    assert found[1] == {"threads": 4, "pool": "none"}
    highest = replace(spec, objectives=(trimtab.Maximize("rate"),))
    assert predictions.ranked(highest, lambda one, _: float(one["threads"]))[0]["threads"] == 8


def test_a_large_space_is_drawn_from_the_same_way_each_time(study: Study) -> None:
    spec = with_space(study, [trimtab.Int("bytes", 1, 1 << 30, log=True), trimtab.Float("x", -1.0, 1.0)])
    found = predictions.ranked(spec, lambda one, _: abs(one["x"]))
    assert found == predictions.ranked(spec, lambda one, _: abs(one["x"]))
    assert len(found) == predictions.POINTS
    assert abs(found[0]["x"]) < 0.05
    # Half of the draws are below the middle of the logarithmic range.
    assert 80 < sum(one["bytes"] < 1 << 15 for one in found) < 176


def test_the_best_prediction_that_the_constraints_allow_is_measured_next(client: trimtab.Client, name: str) -> None:
    study = make_study(
        client,
        name,
        space=[trimtab.Int("a", 0, 9, default=0), trimtab.Int("b", 0, 9, default=0)],
        constraints=["a + b <= 9"],
    )
    trial = predictions.enqueue_best(study, lambda one, _: -(2.0 * one["a"] + one["b"]))
    assert trial is not None
    assert trial.params == {"a": 9, "b": 0}
    assert predictions.enqueue_best(study, lambda one, _: 0.0) == trial
    assert study.ask()[0].number == trial.number


def test_a_model_that_knows_nothing_requests_nothing(study: Study) -> None:
    assert predictions.enqueue_best(study, lambda one, _: None) is None
    assert study.trials() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "a file with a function predict"),
        ("import no_such_module", "cannot be executed: ModuleNotFoundError"),
        ("def predict(configuration, context): return 1 / 0", "failed: ZeroDivisionError"),
        ("def predict(configuration, context): return float('nan')", "returned nan. Return a finite number"),
        ("def predict(configuration, context): return 'fast'", "failed: ValueError"),
    ],
)
def test_a_broken_model_says_what_is_wrong(study: Study, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=re.escape(said)):
        predictions.enqueue_best(study, predictions.load(file))


def test_several_objectives_have_no_model(study: Study) -> None:
    spec = replace(study.spec, objectives=(trimtab.Minimize("a"), trimtab.Minimize("b")))
    with pytest.raises(InvalidInput, match="no model for a study with several objectives"):
        predictions.check(spec)
