from __future__ import annotations

import pytest
from django.db.models.functions import Now

from service.core.errors import AlreadyExists
from service.planning import sample_data
from service.planning.create import create_study, delete_study
from service.results.analysis import analyse
from service.studies import selectors
from service.studies.models import Operation, Study
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages
from service.workers import compute
from tests.factories.domain import make_spec, study_name


@pytest.fixture(autouse=True)
def without_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "send", lambda operation_id: None)


def states(principal: Principal) -> dict[str, str]:
    return {study.name: study.state for study in sample_data.find(principal)}


def step(computing: bool = True) -> None:
    """Run the step of one sweep, and the operations that workers compute until the next one."""
    sample_data.measure()
    if computing:
        for _ in range(2):
            compute.compute_next()


def test_the_service_measures_the_sample_data_to_its_verdict(principal: Principal) -> None:
    for study in sample_data.create(principal):
        assert (study.tags, study.owner) == (["sample"], principal.actor)
    for _ in range(60):
        step()
        # Nothing is lost if someone creates it again meanwhile, for example in a second tab.
        sample_data.create(principal)
        if set(states(principal).values()) == {"COMPLETED"}:
            break
    assert states(principal) == {"sample": "COMPLETED", "sample-random": "COMPLETED"}
    for study in sample_data.find(principal):
        trials = selectors.all_trials(principal, study)
        assert len(trials) > 40
        failed = [(trial.number, trial.state) for trial in trials if trial.state != "COMPLETED"]
        assert failed == ([(17, "FAILED")] if study.name == "sample" else [])
    verdict = analyse(principal, selectors.get_study(principal, "sample")).verdict
    assert verdict is not None
    assert verdict.level == "proven"
    assert len(selectors.get_trial(principal, "sample", 1).measurements) == 3
    # A later step changes nothing.
    revisions = [study.revision for study in sample_data.find(principal)]
    step()
    assert [study.revision for study in sample_data.find(principal)] == revisions


def test_a_step_waits_for_the_workers(principal: Principal) -> None:
    sample_data.create(principal)
    sample = selectors.get_study(principal, "sample")
    unfinished = access.rows(Operation, principal).filter(study_id=sample.pk, state="PENDING")
    for _ in range(5):
        step(computing=False)
    assert unfinished.count() == 1


def test_a_study_whose_suggestions_fail_ends(principal: Principal) -> None:
    sample_data.create(principal)
    sample = selectors.get_study(principal, "sample")
    for _ in range(5):
        access.add(principal, Operation(study_id=sample.pk, count=4, state="FAILED", finished_at=Now()))
    step(computing=False)
    assert states(principal)["sample"] == "ABORTED"


def test_an_extended_budget_is_measured_up_to_a_bound(principal: Principal) -> None:
    sample_data.create(principal)
    access.rows(Study, principal).update(next_number=201)
    step(computing=False)
    assert {study.revision for study in sample_data.find(principal)} == {1}


def test_only_sample_data_is_continued_and_deleted(principal: Principal) -> None:
    own = create_study(principal, study_name(), make_spec(), tags=["sample"]).name
    sample_data.create(principal)
    delete_study(principal, "sample-random")
    assert list(states(principal)) == ["sample"]
    sample_data.create(principal)
    assert list(states(principal)) == ["sample", "sample-random"]
    for _ in range(2):
        sample_data.delete(principal)
        assert states(principal) == {}
    assert selectors.get_study(principal, own).revision == 1
    create_study(principal, "sample", make_spec())
    with pytest.raises(AlreadyExists, match="no sample data"):
        sample_data.create(principal)
