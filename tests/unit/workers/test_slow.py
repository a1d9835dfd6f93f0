"""Operations that need more CPU than the quick workers give: the workers for slow ones compute them, in fair turns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.planning.create import create_study
from service.results.models import StudyInsight
from service.studies.models import Operation, Study
from service.studies.selectors import OperationDetail, get_study
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.ask import ask as ask_trials
from service.workers import compute, losses, sweep
from tests.factories.domain import ScriptedAlgorithm, make_principal, make_spec, study_name
from tests.factories.operations import row


@pytest.fixture
def slow_ones(enqueued: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations for the workers for slow ones, as `enqueued` has those for the others."""
    sent: list[str] = []
    monkeypatch.setattr(messages, "send_slow", lambda operation_id: sent.append(str(operation_id)))
    return sent


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[pytest.MonkeyPatch]:
    """Suggestions need more CPU than the quick workers give, and than the others give, until this is undone."""
    settings.TRIMTAB_OPERATION_QUICK_CPU_SECONDS, settings.TRIMTAB_OPERATION_CPU_SECONDS = 0.5, 0.8

    def suggest(*_: object, **__: object) -> None:
        while True:
            pass

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedAlgorithm, "suggest", suggest)
        yield patch


def asked_by(principal: Principal, *, slow: bool = False) -> OperationDetail:
    """Ask for a trial of a new study."""
    study = create_study(principal, study_name(), make_spec(algorithm={"name": "gp"}))
    access.rows(Study, principal).filter(pk=study.pk).update(slow=slow)
    return ask_trials(principal, study.name)


def states(*asked: OperationDetail) -> list[str]:
    return [row(one).state for one in asked]


@pytest.mark.usefixtures("endless")
def test_an_operation_that_is_not_quick_is_given_to_the_workers_for_slow_ones(
    principal: Principal, study: str, enqueued: list[str], slow_ones: list[str]
) -> None:
    asked = ask_trials(principal, study)
    enqueued.clear()
    compute.compute_next()
    assert (row(asked).state, row(asked).losses, get_study(principal, study).slow) == ("PENDING", 0, True)
    assert (enqueued, slow_ones) == ([], [str(asked.operation.id)])
    compute.compute_next()
    assert row(asked).attempt == 1, "no quick worker takes it again"
    compute.compute_next_slow()
    assert (row(asked).state, row(asked).error_code) == ("FAILED", "computation_too_long")
    assert "more than 0.8 s of CPU" in row(asked).error_message


@pytest.mark.parametrize("share", [0.0, 1000.0], ids=["slow", "quick"])
def test_a_slow_study_stays_with_the_workers_for_slow_operations_until_it_is_quick(
    principal: Principal, enqueued: list[str], slow_ones: list[str], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute, "_QUICK_AGAIN", share)
    first = asked_by(principal, slow=True)
    assert (enqueued, slow_ones) == ([], [str(first.operation.id)])
    second = ask_trials(principal, first.study.name)
    slow_ones.clear()
    enqueued.clear()
    compute.compute_next_slow()
    assert states(first, second) == ["SUCCEEDED", "PENDING"]
    waiting = [str(second.operation.id)]
    assert (enqueued, slow_ones) == ((waiting, []) if share else ([], waiting))


@pytest.mark.usefixtures("slow_ones")
def test_others_are_served_while_a_tenant_has_endless_operations(
    principal: Principal, endless: pytest.MonkeyPatch
) -> None:
    bad = [asked_by(principal) for _ in range(3)]
    compute.compute_next()
    good = asked_by(make_principal())
    endless.undo()
    compute.compute_next()
    assert states(*bad, good) == ["PENDING", "PENDING", "PENDING", "SUCCEEDED"]


@pytest.mark.usefixtures("slow_ones")
def test_tenants_take_turns_with_slow_operations(principal: Principal) -> None:
    """A tenant that has quick operations served as well gets no fewer turns for its slow ones."""
    many = [asked_by(principal, slow=True) for _ in range(3)]
    compute.compute_next_slow()
    stranger = make_principal()
    others = [asked_by(stranger, slow=True) for _ in range(2)]
    compute.compute_next_slow()
    assert states(*many, *others) == ["SUCCEEDED", "PENDING", "PENDING", "SUCCEEDED", "PENDING"]
    asked_by(principal)
    compute.compute_next()
    compute.compute_next_slow()
    assert states(*many, *others) == ["SUCCEEDED", "SUCCEEDED", "PENDING", "SUCCEEDED", "PENDING"]


@pytest.mark.usefixtures("slow_ones")
def test_an_insight_has_a_turn_among_slow_operations(principal: Principal) -> None:
    many = [asked_by(principal, slow=True) for _ in range(2)]
    stranger = make_principal()
    study = create_study(stranger, study_name(), make_spec())
    access.add(stranger, StudyInsight(study=study, asked_at=Now()))
    insight = access.rows(StudyInsight, stranger)
    compute.compute_next_slow()
    compute.compute_next_slow()
    assert insight.get().asked_at is None
    assert states(*many) == ["SUCCEEDED", "PENDING"]


@pytest.mark.usefixtures("enqueued")
def test_messages_about_slow_operations_that_were_lost_are_sent_again(
    principal: Principal, slow_ones: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_by(principal, slow=True)
    slow_ones.clear()
    losses.recover("slow")
    assert slow_ones == [str(asked.operation.id)]
    late = Now() - timedelta(seconds=60)
    access.rows(Operation, principal).update(created_at=late, enqueued_at=late)
    sweep.send_forgotten()
    assert slow_ones == [str(asked.operation.id)] * 2
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(messages, "send_insight", lambda *key: sent.append(key))
    access.rows(Operation, principal).delete()
    access.add(principal, StudyInsight(study=asked.study, asked_at=Now()))
    losses.recover("slow")
    assert sent == [(principal.tenant_id, asked.study.pk)]
