"""Insight: asked for by whoever looks, computed once by a worker, kept until there is more to tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.planning.create import create_study
from service.results import analysis, insight
from service.results.models import StudyInsight
from service.studies import selectors
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.tell import add_trial
from service.tuner.importance import FEWEST, Insight, insights
from tests.factories.domain import make_spec, study_name


@pytest.fixture(autouse=True)
def reported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return the messages to workers: tenant and study."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(messages, "send_insight", lambda *key: sent.append(key))
    return sent


@pytest.fixture
def study(principal: Principal) -> str:
    name = create_study(principal, study_name(), make_spec()).name
    measure(principal, name, FEWEST - 1)
    return name


def measure(principal: Principal, name: str, count: int) -> None:
    begun = selectors.get_study(principal, name).trial_count
    for number in range(begun, begun + count):
        x = number / 100
        add_trial(principal, name, params={"x": x, "n": 4}, metrics={"seconds": 1 + x})


def look(principal: Principal, name: str) -> StudyInsight:
    return insight.read(principal, selectors.get_study(principal, name))


def test_no_insight_is_computed_before_the_first_measurement(
    principal: Principal, study: str, reported: list[tuple[int, int]]
) -> None:
    found = look(principal, study)
    assert (found.data, found.asked_at, reported) == (None, None, [])


def test_a_look_asks_once_and_the_answer_is_kept(
    principal: Principal, study: str, reported: list[tuple[int, int]]
) -> None:
    measure(principal, study, 1)
    assert look(principal, study).asked_at is not None
    assert look(principal, study).data is None
    (key,) = reported
    insight.compute(*key)
    found = look(principal, study)
    assert (found.finished, found.error, found.asked_at) == (FEWEST, "", None)
    assert [effect["parameter"] for effect in found.data["objectives"][0]["effects"]] == ["x", "n"]
    # Without a measurement of the default there is nothing to compare with.
    assert list(found.data["prospects"]) == []
    assert found.data["penalties"] is None
    assert found.data["space"]["feasible"] is None
    insight.compute(*key)
    # One more result changes little; a tenth more is worth a new look, and so is the end of the study.
    measure(principal, study, 3)
    assert look(principal, study).asked_at is not None
    assert look(principal, study).data == found.data
    assert reported == [key, key]


def test_a_lost_request_is_repeated(principal: Principal, study: str, reported: list[tuple[int, int]]) -> None:
    measure(principal, study, 1)
    look(principal, study)
    rows = access.rows(StudyInsight, principal)
    rows.update(asked_at=Now() - timedelta(minutes=5), claimed_at=Now() - timedelta(minutes=5))
    look(principal, study)
    assert len(reported) == 2
    insight.compute(*reported[0])
    assert look(principal, study).data is not None


def test_a_failure_is_reported_and_the_last_answer_stays(
    principal: Principal, study: str, reported: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, study, 1)
    look(principal, study)
    insight.compute(*reported[0])

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no forest")

    monkeypatch.setattr(insight, "insights", fail)
    measure(principal, study, 20)
    look(principal, study)
    insight.compute(*reported[0])
    found = look(principal, study)
    assert (found.error, found.asked_at) == ("ValueError: no forest", None)
    assert found.data is not None


def test_readers_get_the_parts_of_the_first_insight_and_a_whole_one_stays(
    principal: Principal, study: str, reported: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, study, 1)
    look(principal, study)
    seen: list[StudyInsight] = []

    def watched(*args: Any, **options: Any) -> Iterator[Insight]:
        for part in insights(*args, **options):
            yield part
            seen.append(look(principal, study))

    monkeypatch.setattr(insight, "insights", watched)
    insight.compute(*reported[0])
    # What a reader sees after each part; the last one is stored when all are there.
    assert [one.data["missing"] for one in seen] == [["forest", "process"], ["process"], ["process"]]
    assert [len(one.data["objectives"]) for one in seen] == [0, 1, 1]
    assert {(one.finished, one.asked_at is None) for one in seen} == {(FEWEST, False)}
    assert seen[0].data["space"] == look(principal, study).data["space"]
    whole = look(principal, study)
    assert (whole.data["missing"], whole.asked_at) == ([], None)

    seen.clear()
    measure(principal, study, 3)
    look(principal, study)
    insight.compute(*reported[1])
    assert [one.data for one in seen] == 3 * [whole.data]
    assert look(principal, study).finished == FEWEST + 3


def test_parts_stay_when_a_later_one_fails(
    principal: Principal, study: str, reported: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, study, 1)
    look(principal, study)

    def fail(*_: object) -> None:
        raise ValueError("no process")

    monkeypatch.setattr(insight, "by_process", fail)
    insight.compute(*reported[0])
    found = look(principal, study)
    assert (found.error, found.asked_at, found.data["missing"]) == ("ValueError: no process", None, ["process"])
    assert len(found.data["objectives"]) == 1


def test_the_insight_uses_the_recommended_configuration_instead_of_a_lucky_run(
    principal: Principal, reported: list[tuple[int, int]]
) -> None:
    name = create_study(principal, study_name(), make_spec(noisy=True)).name
    steady, lucky = {"x": 0.1, "n": 4}, {"x": 0.9, "n": 4}
    results = [(steady, seconds) for seconds in (1.0, 1.01, 0.99, 1.0)] + [(lucky, 0.95)]
    # All neighbours of the lucky configuration are slower, and runs of one configuration differ by as much as it is
    # faster.
    neighbours = [0.85, 0.87, 0.88, 0.92, 0.93, 0.95]
    results += [({"x": x, "n": 4}, seconds) for x in neighbours for seconds in (1.3, 1.7)]
    for params, seconds in results:
        add_trial(principal, name, params=params, metrics={"seconds": seconds})
    look(principal, name)
    insight.compute(*reported[0])
    study = selectors.get_study(principal, name)
    assert [found.params for found in analysis.analyse(principal, study).best] == [steady]
    assert look(principal, name).data["objectives"][0]["best"] == steady
