"""Records follow the verdicts of studies."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from service.core.errors import InvalidInput
from service.matching import records
from service.matching.models import Record
from service.matching.origin import nodes_of
from service.planning.create import delete_study, extend_budget, update_state
from service.results import summaries
from service.tenancy import access, tenants
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.continuing import check_study
from tests.factories.domain import make_principal, refused
from tests.factories.fleet import study
from tests.factories.matching import make_job, make_record
from tests.unit.matching.studies import equal, faster, record_of, run_to_the_end, start


def actions_on(principal: Principal, record: Record) -> list[str]:
    """Return the actions on a record in the audit trail, oldest first."""
    entries = access.rows(AuditEntry, principal).filter(target=f"record/{record.pk}").order_by("pk")
    return list(entries.values_list("action", flat=True))


def recheck(principal: Principal, name: str, seconds: Any) -> None:
    check_study(principal, name)
    run_to_the_end(principal, name, seconds)


def test_a_proven_gain_becomes_a_record_with_the_end_of_the_study(principal: Principal) -> None:
    name = start(principal)
    run_to_the_end(principal, name)
    record, ended = record_of(principal, name), study(principal, name)
    assert ended.verdict is not None
    assert (record.state, record.cause) == ("ACTIVE", "")
    assert (record.gain, record.gain_low) == (ended.verdict["gain"], ended.verdict["low"])
    assert record.gain_low > 0
    assert float(record.params["x"]) > 0.5
    assert (record.component, record.application) == ("compiler", "small")
    # The job is the one that the trial of the default ran.
    assert (record.user, record.name, record.program, record.nodes) == ("tester", "small", "ant", 4)
    assert record.command_line == "/opt/ant/bin/ant --x=0.5 --grid 64"
    assert record.submitted_at >= ended.created_at
    assert actions_on(principal, record) == ["record.create"]


def test_the_spec_says_which_job_is_tuned(principal: Principal) -> None:
    job = {"user": "ada", "name": "ants", "command": "/home/ada/colony --ants 9", "nodes": 2}
    name = start(principal, job=job)
    run_to_the_end(principal, name)
    record = record_of(principal, name)
    assert (record.user, record.name, record.nodes) == ("ada", "ants", 2)
    assert (record.program, record.command_line) == ("colony", "/home/ada/colony --ants 9")


def test_an_unproven_gain_becomes_no_record(principal: Principal) -> None:
    name = start(principal)
    run_to_the_end(principal, name, equal)
    assert study(principal, name).state == "COMPLETED"
    summaries.refresh()
    assert records.page(principal, study=name).items == []


def test_a_gain_without_noise_becomes_a_record_with_the_sweep(principal: Principal) -> None:
    name = start(principal, noisy=False, final_check=None)
    run_to_the_end(principal, name, lambda params: 8.0 if float(params["x"]) > 0.5 else 10.0)
    summaries.refresh()
    record = record_of(principal, name)
    assert record.gain == pytest.approx(0.2)
    entries = access.rows(AuditEntry, principal).count()
    summaries.summarise(principal, study(principal, name).pk)
    assert access.rows(AuditEntry, principal).count() == entries


def test_a_record_that_a_process_did_not_write_is_written_by_the_sweep(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = start(principal)
    with monkeypatch.context() as patch:
        patch.setattr("service.trials.ending.records.settle", lambda *_: None)
        run_to_the_end(principal, name)
    assert records.page(principal, study=name).items == []
    summaries.refresh()
    assert record_of(principal, name).is_active


def test_a_later_check_withdraws_and_restores_a_record(principal: Principal) -> None:
    name = start(principal)
    run_to_the_end(principal, name)
    check_study(principal, name)
    # While the check runs, the earlier verdict stands.
    assert record_of(principal, name).is_active
    run_to_the_end(principal, name, equal)
    record = record_of(principal, name)
    assert (record.state, record.cause) == ("WITHDRAWN", "verdict")
    assert name in record.state_reason
    summaries.refresh()
    assert not record_of(principal, name).is_active
    recheck(principal, name, faster)
    again = record_of(principal, name)
    assert again.is_active
    assert again.active_since > record.active_since
    assert actions_on(principal, record) == ["record.create", "record.withdraw", "record.restore"]


def test_a_deleted_study_withdraws_its_record(principal: Principal) -> None:
    name = start(principal)
    run_to_the_end(principal, name)
    delete_study(principal, name)
    record = record_of(principal, name)
    assert (record.state, record.cause, record.study_id) == ("WITHDRAWN", "deletion", None)
    # The name is free again, and the study of that name has its own record.
    start(principal, name)
    run_to_the_end(principal, name)
    assert [one.state for one in records.page(principal, study=name).items] == ["ACTIVE", "WITHDRAWN"]


def test_a_search_that_continues_keeps_its_record_until_it_ends(principal: Principal) -> None:
    name = start(principal, final_check={"max_trials": 12, "effects": 0})
    run_to_the_end(principal, name)
    extend_budget(principal, name, {"max_trials": 40})
    summaries.refresh()
    assert record_of(principal, name).is_active
    update_state(principal, name, "ABORTED")
    summaries.refresh()
    assert record_of(principal, name).is_active


def test_a_person_withdraws_and_restores(principal: Principal) -> None:
    name = start(principal)
    run_to_the_end(principal, name)
    record = record_of(principal, name)
    changed = records.change(principal, str(record.pk), "WITHDRAWN", "It is an old compiler.")
    assert (changed.state, changed.cause, changed.state_reason) == ("WITHDRAWN", "person", "It is an old compiler.")
    assert records.change(principal, str(record.pk), "WITHDRAWN", "Again.").state_reason == "It is an old compiler."
    # A new proof does not overrule a person.
    recheck(principal, name, faster)
    assert record_of(principal, name).cause == "person"
    restored = records.change(principal, str(record.pk), "ACTIVE")
    assert (restored.is_active, restored.cause, restored.state_reason) == (True, "", "tester has restored it.")


def test_changes_are_checked(principal: Principal) -> None:
    record = make_record(principal)
    refused("record_not_found", lambda: records.change(principal, "999999999", "ACTIVE"))
    refused("record_not_found", lambda: records.change(principal, "x", "ACTIVE"))
    refused("record_not_found", lambda: records.change(principal, str(2**64), "ACTIVE"))
    refused("record_not_found", lambda: records.change(make_principal(), str(record.pk), "WITHDRAWN"))
    for field, state, reason in (("state", "GONE", ""), ("reason", "WITHDRAWN", "x" * 501)):
        with pytest.raises(InvalidInput) as caught:
            records.change(principal, str(record.pk), state, reason)
        assert caught.value.data["field"] == field


def test_the_oldest_withdrawn_record_gives_way_at_the_limit(principal: Principal) -> None:
    operator = Principal(principal.tenant_id, "operator", principal.role)
    tenants.change(operator, tenants.slug_of(principal.tenant_id), limits_={"matching_records": 2})
    first, second = make_record(principal), make_record(principal)
    records.change(principal, str(second.pk), "WITHDRAWN")
    name = start(principal)
    run_to_the_end(principal, name)
    assert record_of(principal, name).is_active
    assert {one.pk for one in records.page(principal).items} == {first.pk, record_of(principal, name).pk}
    other = start(principal)
    run_to_the_end(principal, other)
    assert study(principal, other).state == "COMPLETED"
    assert records.page(principal, study=other).items == []
    (entry,) = access.rows(AuditEntry, principal).filter(action="record.refuse", target=f"study/{other}")
    assert "2 active records" in entry.detail["reason"]


def test_records_are_listed_in_pages_newest_first(principal: Principal) -> None:
    made = [make_record(principal, component=f"c{index % 2}") for index in range(5)]
    records.change(principal, str(made[0].pk), "WITHDRAWN")
    first = records.page(principal, page_size=2)
    second = records.page(principal, page_size=2, page_token=first.next_page_token)
    third = records.page(principal, page_size=2, page_token=second.next_page_token)
    found = [record.pk for page in (first, second, third) for record in page.items]
    assert found == [record.pk for record in reversed(made)]
    assert third.next_page_token == ""
    assert [record.pk for record in records.page(principal, component="c1").items] == [made[3].pk, made[1].pk]
    assert [record.pk for record in records.page(principal, state="WITHDRAWN").items] == [made[0].pk]
    assert records.page(principal, study="\0").items == []
    for size, token in ((501, ""), (-1, ""), (0, "x"), (0, str(2**70))):
        with pytest.raises(InvalidInput):
            records.page(principal, page_size=size, page_token=token)


def test_records_are_searched_and_sorted_over_pages(principal: Principal) -> None:
    gains = (0.2, 0.5, 0.2, 0.1, 0.5)
    made = [make_record(principal, gain=gain, component=f"c{place}") for place, gain in enumerate(gains)]
    expected = {"gain": [3, 2, 0, 4, 1], "-gain": [4, 1, 2, 0, 3], "component": [0, 1, 2, 3, 4], "created": range(5)}
    for sort, places in expected.items():
        found, token = [], ""
        for _ in range(3):
            page = records.page(principal, sort=sort, page_size=2, page_token=token)
            found += [record.pk for record in page.items]
            token = page.next_page_token
        assert found == [made[place].pk for place in places]
        assert token == ""
    # The last row of a page need not pass the filter any more.
    first = records.page(principal, sort="gain", state="ACTIVE", page_size=1)
    records.change(principal, str(first.items[0].pk), "WITHDRAWN")
    rest = records.page(principal, sort="gain", state="ACTIVE", page_token=first.next_page_token)
    assert [record.pk for record in rest.items] == [made[place].pk for place in (2, 0, 4, 1)]
    other = make_record(principal, job=make_job(user="Bob_B", program="sonar"))
    for text, count in (("bob_b", 1), ("SONAR", 1), ("ant-1", 6), ("%", 0), ("\0", 0)):
        assert len(records.page(principal, search=text).items) == count
    assert records.page(principal, search="sonar").items == [other]
    for sort, token in (("age", ""), ("gain", "x"), ("gain", "1"), ("--gain", "")):
        with pytest.raises(InvalidInput):
            records.page(principal, sort=sort, page_token=token)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ([], 1),
        (["--nodes=3"], 3),
        (["--nodes", "3"], 3),
        (["-N", "5", "--exclusive"], 5),
        (["-N7"], 7),
        (["--nodes=2-4"], 2),
        (["--nodes=0"], 1),
        (["--nodelist=n1", "--ntasks=9"], 1),
        (["-N"], 1),
        (["--nodes=9999999"], 1_000_000),
    ],
)
def test_nodes_are_read_from_scheduler_options(options: list[str], nodes: int) -> None:
    assert nodes_of(options) == nodes


def test_the_default_limit_is_the_installations() -> None:
    assert settings.TRIMTAB_LIMITS["matching_records"] > 0
