"""Reported jobs, and the records that they withdraw."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.core.errors import InvalidInput
from service.matching import feedback, jobs, records
from service.matching.jobs import Considered, Report
from service.matching.models import Ledger, Record, ReportedJob
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from tests.factories.domain import make_principal
from tests.factories.matching import make_job, make_record, make_report, make_submission

NOISE = (0.99, 1.0, 1.01, 0.995, 1.005)
USERS = ("ada", "bob", "eve", "ada", "bob")


def reports(record: Record, decision: str, seconds: float, **changes: Any) -> list[Report]:
    """Return reports on five jobs of three users that took about so many seconds."""
    made = [make_report(record, decision, seconds * factor, **changes) for factor in NOISE]
    return [by(user, one) for user, one in zip(USERS, made, strict=True)]


def by(user: str, report: Report) -> Report:
    """Return the same report on a job of this user."""
    submitted = report.submitted
    return replace(report, submitted=replace(submitted, job=replace(submitted.job, user=user)))


def fared(principal: Principal, record: Record) -> feedback.Feedback:
    return feedback.of(principal, [record.pk])[record.pk]


def on_nodes(nodes: int) -> dict[str, Any]:
    return {"submitted": make_submission(nodes=nodes)}


def test_only_the_first_report_of_a_submission_counts(principal: Principal) -> None:
    record = make_record(principal)
    first = make_report(record, seconds=10.0)
    jobs.report(principal, [first, replace(first, seconds=20.0), make_report(None)])
    jobs.report(principal, [replace(first, seconds=30.0)])
    found = jobs.page(principal).items
    assert [kept.row.seconds for kept in found if kept.considered] == [10.0]
    assert len(found) == 2
    assert access.rows(Ledger, principal).get().jobs == 2
    # The same submission of another tenant is another job.
    stranger = make_principal()
    jobs.report(stranger, [replace(first, considered=())])
    assert len(jobs.page(stranger).items) == 1


def test_a_job_is_stored_as_it_was_reported(principal: Principal) -> None:
    record = make_record(principal)
    sent = make_report(record, "REFUSED", 2.5, end="FAILED", job_id="17_3")
    jobs.report(principal, [sent])
    (kept,) = jobs.page(principal, record=str(record.pk)).items
    row, job = kept.row, sent.submitted.job
    assert (row.submission, row.job_id, row.end, row.seconds) == (sent.submission, "17_3", "FAILED", 2.5)
    assert (row.user, row.name, row.program, row.command_line) == (job.user, job.name, job.program, job.command_line)
    assert (row.cluster, row.cluster_nodes, row.partition, row.nodes) == ("alpha", 8, "long", 2)
    assert (row.submitted_at, row.ended_at) == (job.submitted_at, sent.ended_at)
    assert [(one.record_id, one.score, one.decision) for one in kept.considered] == [(record.pk, 0.9, "REFUSED")]


def test_jobs_are_listed_in_pages_newest_first(principal: Principal) -> None:
    record = make_record(principal)
    sent = [make_report(record if index % 2 else None, job_id=str(index)) for index in range(5)]
    for one in sent:
        jobs.report(principal, [one])
    first = jobs.page(principal, page_size=3)
    second = jobs.page(principal, page_size=3, page_token=first.next_page_token)
    assert [kept.row.job_id for kept in [*first.items, *second.items]] == ["4", "3", "2", "1", "0"]
    assert second.next_page_token == ""
    assert [kept.row.job_id for kept in jobs.page(principal, record=str(record.pk)).items] == ["3", "1"]
    assert jobs.page(principal, record="none").items == []


def test_slower_jobs_withdraw_a_record(principal: Principal) -> None:
    record, other = make_record(principal), make_record(principal)
    jobs.report(principal, [*reports(record, "APPLIED", 12.0), *reports(other, "APPLIED", 8.0)])
    assert fared(principal, record) == feedback.Feedback(5, 0, users=3)
    jobs.report(principal, [*reports(record, "CONTROL", 10.0), *reports(other, "CONTROL", 10.0)])
    found = fared(principal, record)
    assert found.change == pytest.approx(0.2, abs=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert 0.15 < found.low < 0.2 < found.high < 0.25
    withdrawn = records.get(principal, str(record.pk))
    assert (withdrawn.state, withdrawn.cause) == ("WITHDRAWN", "jobs")
    assert "20.0 % longer" in withdrawn.state_reason
    assert "5 jobs with the settings, 5 controls, of 3 users" in withdrawn.state_reason
    assert records.get(principal, str(other.pk)).is_active
    (entry,) = access.rows(AuditEntry, principal).filter(action="record.withdraw")
    assert (entry.target, entry.detail["cause"]) == (f"record/{record.pk}", "jobs")
    # A person gives it another chance: only jobs that were submitted since then count.
    records.change(principal, str(record.pk), "ACTIVE")
    assert fared(principal, record) == feedback.Feedback()
    jobs.report(principal, reports(record, "APPLIED", 12.0)[:1])
    assert records.get(principal, str(record.pk)).is_active


def sent_by(user: str, record: Record, decision: str, seconds: float, count: int) -> list[Report]:
    return [by(user, make_report(record, decision, seconds * NOISE[place % 5])) for place in range(count)]


def test_one_user_alone_withdraws_no_record_of_everybody(principal: Principal) -> None:
    """Jobs that the scheduler knows, and that the user has written so that they are slow with the settings."""
    record = make_record(principal)
    honest = [*sent_by("ada", record, "APPLIED", 8.0, 3), *sent_by("bob", record, "CONTROL", 10.0, 3)]
    attack = [*sent_by("mallory", record, "APPLIED", 100.0, 8), *sent_by("mallory", record, "CONTROL", 1.0, 8)]
    for batch in (attack, honest, attack):
        jobs.report(principal, [replace(one, submission=make_report().submission) for one in batch])
        assert records.get(principal, str(record.pk)).is_active
    assert fared(principal, record).users == 3


def test_a_record_of_one_user_is_withdrawn_by_jobs_of_this_user(principal: Principal) -> None:
    record = make_record(principal, audience="user")
    jobs.report(principal, [*sent_by("ada", record, "APPLIED", 12.0, 5), *sent_by("ada", record, "CONTROL", 10.0, 5)])
    withdrawn = records.get(principal, str(record.pk))
    assert (withdrawn.state, withdrawn.cause) == ("WITHDRAWN", "jobs")
    assert "5 controls, of 1 user)" in withdrawn.state_reason


def test_the_jobs_of_one_user_are_capped(principal: Principal) -> None:
    record = make_record(principal)
    jobs.report(principal, sent_by("mallory", record, "APPLIED", 100.0, 200))
    jobs.report(principal, sent_by("ada", record, "APPLIED", 10.0, 4))
    assert fared(principal, record).applied == feedback.MOST_OF_USER + 4


def test_only_jobs_that_the_scheduler_knows_count(principal: Principal) -> None:
    record = make_record(principal)
    told = [*reports(record, "APPLIED", 100.0, confirmed=False), *reports(record, "CONTROL", 1.0, confirmed=False)]
    # It says that it ran for longer than since its submission.
    impossible = make_report(record, "APPLIED", 1e6, ended_at=datetime.now(UTC))
    jobs.report(principal, [*told, impossible])
    assert fared(principal, record) == feedback.Feedback(unconfirmed=11)
    assert records.get(principal, str(record.pk)).is_active
    assert not any(kept.row.confirmed for kept in jobs.page(principal).items)


def test_a_job_of_the_scheduler_counts_once(principal: Principal) -> None:
    record = make_record(principal)
    jobs.report(principal, [make_report(record, "APPLIED", 100.0, job_id="17") for _ in range(8)])
    jobs.report(principal, [make_report(record, "CONTROL", 1.0, job_id="17")])
    assert fared(principal, record) == feedback.Feedback(1, 0, users=1)


def test_a_group_without_a_part_is_the_group_of_the_others() -> None:
    from scipy import stats

    values = [2.0, 2.2, 2.1, 2.6, 1.9]
    whole, part, rest = (
        feedback.Group(len(side), float(stats.tmean(side)), float(stats.tvar(side)) if len(side) > 1 else 0.0)
        for side in (values, values[:2], values[2:])
    )
    found = whole.without(part)
    assert (found.count, found.mean, found.variance) == pytest.approx((rest.count, rest.mean, rest.variance))
    assert whole.without(whole) == feedback.NONE


def test_only_completed_jobs_with_and_without_the_settings_count(principal: Principal) -> None:
    record = make_record(principal)
    old = make_submission(submitted_at=datetime.now(UTC) - timedelta(days=1))
    jobs.report(
        principal,
        [
            *reports(record, "APPLIED", 20.0, end="FAILED"),
            *reports(record, "APPLIED", 20.0, end="CANCELLED"),
            *reports(record, "DRY_RUN", 20.0),
            *reports(record, "REFUSED", 20.0),
            *reports(record, "APPLIED", 20.0, submitted=old),
            make_report(record, "APPLIED", 0.0),
            *reports(record, "CONTROL", 10.0)[:2],
            *reports(record, "APPLIED", 10.0)[:2],
        ],
    )
    assert fared(principal, record) == feedback.Feedback(2, 2, users=2)


def test_jobs_are_compared_within_equal_numbers_of_nodes(principal: Principal) -> None:
    record = make_record(principal)
    # The settings gain 10 % on each number of nodes, but mostly run where jobs take longer.
    sent = [
        *reports(record, "APPLIED", 90.0, **on_nodes(1)),
        *reports(record, "APPLIED", 9.0, **on_nodes(8))[:3],
        *reports(record, "CONTROL", 100.0, **on_nodes(1))[:3],
        *reports(record, "CONTROL", 10.0, **on_nodes(8)),
        # Too few on two nodes.
        make_report(record, "APPLIED", 500.0, **on_nodes(2)),
    ]
    jobs.report(principal, sent)
    found = fared(principal, record)
    assert (found.applied, found.control) == (9, 8)
    assert found.change == pytest.approx(-0.1, abs=0.005)
    assert records.get(principal, str(record.pk)).is_active


def test_jobs_are_compared_together_where_no_number_of_nodes_has_enough(principal: Principal) -> None:
    record = make_record(principal)
    seconds = (10.0, 10.1, 10.2, 10.3)
    for decision, factor in (("APPLIED", 1.5), ("CONTROL", 1.0)):
        sent = [make_report(record, decision, factor * one, **on_nodes(n)) for n, one in enumerate(seconds, 1)]
        jobs.report(principal, [by(f"user-{n}", one) for n, one in enumerate(sent)])
    assert fared(principal, record).change == pytest.approx(0.5)
    assert not records.get(principal, str(record.pk)).is_active


def test_the_interval_is_welchs() -> None:
    from scipy import stats

    one, other = [2.0, 2.2, 2.1, 2.6], [1.9, 2.0, 2.1]
    groups = [feedback.Group(len(side), float(stats.tmean(side)), float(stats.tvar(side))) for side in (one, other)]
    low, change, high = feedback.compare([(groups[0], groups[1])])
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert low == pytest.approx(math.expm1(expected.low))
    assert high == pytest.approx(math.expm1(expected.high))
    assert low < change < high
    parts = [feedback.Group(1, 2.0, 0.0), feedback.Group(3, (2.2 + 2.1 + 2.6) / 3, float(stats.tvar(one[1:])))]
    together = feedback.Group.together(parts)
    assert (together.count, together.mean, together.variance) == pytest.approx((4, groups[0].mean, groups[0].variance))


def test_equal_times_have_an_interval_of_no_width() -> None:
    side = feedback.Group(3, 1.0, 0.0)
    assert feedback.compare([(side, side)]) == (0.0, 0.0, 0.0)


def test_a_batch_costs_the_same_queries_whatever_its_size(principal: Principal) -> None:
    record = make_record(principal)
    jobs.report(principal, [make_report(record)])
    counts = []
    for size in (2, 100):
        with CaptureQueriesContext(connection) as queries:
            jobs.report(principal, [make_report(record) for _ in range(size)])
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 8


def test_the_oldest_jobs_are_removed_beyond_the_bound(principal: Principal, settings: Any) -> None:
    settings.TRIMTAB_MATCHING_JOBS = 5
    record = make_record(principal)
    for index in range(4):
        jobs.report(principal, [make_report(record, job_id=f"{index}-{n}") for n in range(2)])
    assert [kept.row.job_id for kept in jobs.page(principal).items] == ["3-1", "3-0", "2-1", "2-0", "1-1"]
    assert access.rows(Ledger, principal).get().jobs == 5
    # A submission whose job was removed counts as new: the bound is a memory, too.
    assert access.rows(ReportedJob, principal).count() == 5


def test_a_considered_record_that_does_not_exist_is_left_out(principal: Principal) -> None:
    strange = make_record(make_principal())
    considered = [Considered(str(strange.pk), 0.9, "APPLIED"), Considered("x", 0.9, "APPLIED")]
    jobs.report(principal, [make_report(None, considered=considered)])
    (kept,) = jobs.page(principal).items
    assert kept.considered == []
    assert feedback.of(principal, [strange.pk]) == {strange.pk: feedback.Feedback()}


def test_reports_of_the_same_jobs_at_the_same_time_count_once(principal: Principal) -> None:
    record = make_record(principal)
    sent = [make_report(record) for _ in range(50)]
    errors: list[BaseException] = []

    def report(mine: list[Report]) -> None:
        try:
            jobs.report(principal, mine)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=report, args=(mine,)) for mine in (sent, sent[::-1], sent[10:] + sent[:10])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert access.rows(ReportedJob, principal).count() == access.rows(Ledger, principal).get().jobs == 50
    assert fared(principal, record).applied == feedback.MOST_OF_USER


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"submission": "x"}, "jobs[0].submission"),
        ({"submission": "A" * 32}, "jobs[0].submission"),
        ({"job_id": "1" * 65}, "jobs[0].job_id"),
        ({"end": "LOST"}, "jobs[0].end"),
        ({"seconds": -1.0}, "jobs[0].seconds"),
        ({"seconds": float("nan")}, "jobs[0].seconds"),
        ({"submitted": make_submission(nodes=0)}, "jobs[0].job.nodes"),
        ({"submitted": make_submission(user="x" * 256)}, "jobs[0].job.user"),
        ({"submitted": make_submission(command_line="x" * 4097)}, "jobs[0].job.command_line"),
        ({"submitted": make_submission(name="a\0b")}, "jobs[0].job.name"),
        ({"submitted": replace(make_submission(), cluster_nodes=-1)}, "jobs[0].job.cluster_nodes"),
        ({"considered": [Considered("1", 1.5, "APPLIED")]}, "jobs[0].considered[0].score"),
        ({"considered": [Considered("1", 0.5, "TAKEN")]}, "jobs[0].considered[0].decision"),
        ({"considered": [Considered("1", 0.5, "APPLIED", "x" * 501)]}, "jobs[0].considered[0].reason"),
        ({"considered": [Considered("1", 0.5, "APPLIED")] * 33}, "jobs[0].considered"),
    ],
)
def test_reports_are_checked(principal: Principal, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        jobs.report(principal, [make_report(None, **changes)])
    assert caught.value.data["field"] == field
    assert jobs.page(principal).items == []


def test_a_batch_has_a_bound(principal: Principal) -> None:
    with pytest.raises(InvalidInput, match="at most 500"):
        jobs.report(principal, [make_report(None)] * 501)
    jobs.report(principal, [])
    assert make_job().user == "ada"
