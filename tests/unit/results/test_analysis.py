"""The results of a study when other calls run at the same time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError

from service.planning.create import create_study, update_state
from service.results import analysis, summaries
from service.studies import actions, selectors
from service.studies.change import changing
from service.studies.models import StudySummary, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.domain import ask, make_principal, make_spec, study_name, tell
from tests.factories.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def principal() -> Principal:
    return make_principal()


@pytest.fixture
def name(principal: Principal) -> str:
    return create_study(principal, study_name(), make_spec(noisy=False)).name


def measure(principal: Principal, name: str, seconds: float) -> None:
    (trial,) = ask(principal, name)
    tell(principal, name, trial, seconds)


def best(principal: Principal, name: str, *, may_lag: bool = False) -> tuple[float | None, bool]:
    found = analysis.analyse(principal, selectors.get_study(principal, name), may_lag=may_lag)
    return found.objectives[0].best, found.behind


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next look at what a worker has stored finds no database."""
    real = analysis._stored

    def broken(*_: object) -> None:
        monkeypatch.setattr(analysis, "_stored", real)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(analysis, "_stored", broken)


def test_after_a_look_that_failed_the_next_one_is_of_now(
    principal: Principal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, name, 5.0)
    assert best(principal, name) == (5.0, False)
    measure(principal, name, 1.0)
    fails_once(monkeypatch)
    with pytest.raises(OperationalError):
        best(principal, name)
    assert best(principal, name) == (1.0, False)


def test_a_database_that_is_gone_for_a_moment_leaves_the_summary_to_the_next_sweep(
    principal: Principal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, name, 5.0)
    study = selectors.get_study(principal, name)
    fails_once(monkeypatch)
    with pytest.raises(OperationalError):
        summaries.summarise(principal, study.pk)
    assert not access.rows(StudySummary, principal).filter(study_id=study.pk).exists()
    summaries.summarise(principal, study.pk)
    assert access.rows(StudySummary, principal).get(study_id=study.pk).best == 5.0


def test_a_trial_of_which_more_is_learned_counts_once(principal: Principal, name: str) -> None:
    measure(principal, name, 5.0)
    assert best(principal, name) == (5.0, False)
    with changing(principal, name, "trial.start") as work:
        actions.touch_trial(work, access.rows(Trial, principal).get(study_id=work.study.pk))
    found = analysis.analyse(principal, selectors.get_study(principal, name))
    assert found.best[0].numbers == [1]
    assert found.objectives[0].noise is None


def test_a_read_that_may_lag_does_not_wait_for_a_running_summary(
    principal: Principal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(principal, name, 5.0)
    assert best(principal, name) == (5.0, False)
    measure(principal, name, 1.0)
    study = selectors.get_study(principal, name)
    real: Callable[..., analysis.Analysis] = analysis._summarise
    begun, gate = threading.Event(), threading.Event()

    def slow(*arguments: object) -> analysis.Analysis:
        begun.set()
        assert gate.wait(PATIENCE)
        return real(*arguments)

    monkeypatch.setattr(analysis, "_stored", lambda *_: None)
    monkeypatch.setattr(analysis, "_read_on", lambda *_: None)
    monkeypatch.setattr(analysis, "_summarise", slow)
    other = threading.Thread(target=lambda: analysis.analyse(principal, study))
    other.start()
    try:
        assert begun.wait(PATIENCE)
        assert best(principal, name, may_lag=True) == (5.0, True)
    finally:
        gate.set()
        other.join()


def test_a_long_analysis_may_lag_behind_a_running_study(
    principal: Principal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "_SLOW", 0.0)
    monkeypatch.setattr(analysis, "_REST", math.inf)
    measure(principal, name, 5.0)
    assert best(principal, name, may_lag=True) == (5.0, False)
    measure(principal, name, 1.0)
    assert best(principal, name, may_lag=True) == (5.0, True)
    update_state(principal, name, "PAUSED")
    assert best(principal, name, may_lag=True) == (1.0, False)
