"""Matches from memory: current, bounded, and of one tenant alone."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.core.errors import InvalidInput
from service.matching import books, records, settings
from service.matching.book import Book, Match
from service.matching.books import Books
from service.matching.linkage.score import Weights
from service.tenancy.principal import Principal
from tests.factories.domain import make_principal, refused
from tests.factories.matching import make_job, make_record, make_submission


def nearest(principal: Principal, **changes: Any) -> Match | None:
    """Return the accepted match of the component `compiler`."""
    found = books.match(principal, make_submission(**changes), ["compiler"])
    return found[0] if found else None


def test_the_nearest_record_of_each_component_is_found(principal: Principal) -> None:
    ant = make_record(principal)
    make_record(principal, job=make_job(user="bob", name="whale", program="sonar", command_line="/opt/sonar"))
    other = make_record(principal, component="mpi", job=make_job(name="angry_ant_4"))
    found = books.match(principal, make_submission())
    assert [match.record.pk for match in found] == [ant.pk, other.pk]
    assert all(match.is_accepted for match in found)
    (match, *_) = found
    assert match.score == pytest.approx(sum(part.weight * part.similarity for part in match.parts))
    assert sum(part.weight for part in match.parts) == pytest.approx(1)
    assert match.reason.endswith("reaches the threshold 0.77.")
    assert [one.record.pk for one in books.match(principal, make_submission(), ["mpi", "none"])] == [other.pk]


def test_a_record_below_the_threshold_is_only_explained(principal: Principal) -> None:
    record = make_record(principal)
    submission = make_submission(user="eve", name="whale", program="sonar", command_line="/opt/sonar -x", nodes=8)
    assert books.match(principal, submission) == []
    (match,) = books.match(principal, submission, explain=True)
    assert match.record.pk == record.pk
    assert not match.is_accepted
    assert match.reason.endswith("is below the threshold 0.77.")


def test_among_equals_the_record_that_became_active_last_wins(principal: Principal) -> None:
    job = make_job()
    first, second = make_record(principal, job=job), make_record(principal, job=job)
    found = nearest(principal)
    assert found is not None
    assert found.record.pk == second.pk
    records.change(principal, str(first.pk), "WITHDRAWN")
    records.change(principal, str(first.pk), "ACTIVE")
    found = nearest(principal)
    assert found is not None
    assert found.record.pk == first.pk


def test_changes_are_seen_by_the_next_match(principal: Principal) -> None:
    assert nearest(principal) is None
    record = make_record(principal)
    found = nearest(principal)
    assert found is not None
    assert found.record.params == {"x": 0.25, "n": 4}
    records.change(principal, str(record.pk), "WITHDRAWN")
    assert nearest(principal) is None
    records.change(principal, str(record.pk), "ACTIVE")
    assert nearest(principal) is not None
    settings.update(principal, "", replace(settings.DEFAULT, threshold=1.0))
    assert nearest(principal, name="calm_ant_2") is None
    settings.update(principal, "alpha", settings.DEFAULT)
    assert nearest(principal, name="calm_ant_2") is not None


def test_weights_of_a_cluster_count_for_its_jobs(principal: Principal) -> None:
    make_record(principal)
    nothing = dict.fromkeys(Weights.__dataclass_fields__, 0.0)
    by_user = replace(settings.DEFAULT, weights=Weights(**{**nothing, "user": 1.0}))
    settings.update(principal, "alpha", by_user)
    (match,) = books.match(principal, make_submission(name="whale", program="sonar", nodes=8))
    assert match.score == pytest.approx(1.0)
    elsewhere = replace(make_submission(name="whale", program="sonar", nodes=8), cluster="beta")
    assert books.match(principal, elsewhere) == []


def test_no_answer_depends_on_another_tenant(principal: Principal) -> None:
    """Words of a path count by how rare they are among the records of this tenant alone."""
    make_record(principal)
    make_record(principal, job=make_job(name="bee", command_line="/home/ada/bin/bee"))
    submission = make_submission(command_line="/home/ada/lib/ant", name="bee_ant")
    before = [(match.score, match.parts) for match in books.match(principal, submission, explain=True)]
    stranger = make_principal()
    for index in range(20):
        make_record(stranger, job=make_job(command_line=f"/home/ada/lib/ant{index}"))
    assert [match.record.tenant_id for match in books.match(stranger, submission)] == [stranger.tenant_id]
    books.books = Books()
    after = [(match.score, match.parts) for match in books.match(principal, submission, explain=True)]
    assert after == before


def test_a_warm_match_costs_one_query_and_a_book_alone_none(principal: Principal) -> None:
    make_record(principal)
    books.match(principal, make_submission())
    with CaptureQueriesContext(connection) as queries:
        books.match(principal, make_submission())
    assert len([one for one in queries if "matching_ledger" in one["sql"]]) == 1
    assert len([one for one in queries if "matching_record" in one["sql"]]) == 0
    with CaptureQueriesContext(connection) as queries:
        assert books.books.of(principal.tenant_id).match(make_submission())
    assert len(queries) == 0


def test_tenants_that_were_used_longest_ago_are_forgotten(transactional_db: None) -> None:
    few = Books(most=10)
    tenants = [make_principal() for _ in range(3)]
    for tenant in tenants:
        for _ in range(4):
            make_record(tenant)
        few.refreshed(tenant)
    assert len(few) == 2
    assert few.of(tenants[2].tenant_id).is_loaded
    # A forgotten tenant is read again.
    assert len(few.refreshed(tenants[0]).match(make_submission())) == 1
    for _ in range(20):
        make_record(tenants[0])
    assert len(few.refreshed(tenants[0])) == 24
    assert len(few) == 1


def test_matches_are_right_while_records_are_added_and_withdrawn(principal: Principal) -> None:
    """The record that matches best stays, whatever happens to the others."""
    best = make_record(principal, job=make_job(name="best_2"))
    book, wrong, errors = Book(), [], list[BaseException]()
    book.refresh(principal)

    def change() -> None:
        try:
            for index in range(15):
                other = make_record(principal, job=make_job(name=f"other{index}", user="bob"))
                book.refresh(principal)
                records.change(principal, str(other.pk), "WITHDRAWN")
                book.refresh(principal)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = book.match(make_submission(name="best_2"))
        wrong += [match for match in found if match.record.pk != best.pk]
        assert found
    for thread in threads:
        thread.join()
    assert (errors, wrong) == ([], [])
    assert len(book) == 1


def test_jobs_and_components_are_checked(principal: Principal) -> None:
    for field, submission, components in (
        ("job.nodes", make_submission(nodes=1_000_001), []),
        ("job.command_line", make_submission(command_line="x" * 4097), []),
        ("components", make_submission(), ["c"] * 33),
        ("components[0]", make_submission(), ["x" * 201]),
    ):
        with pytest.raises(InvalidInput) as caught:
            books.match(principal, submission, components)
        assert caught.value.data["field"] == field


def test_settings_are_checked_and_bounded(principal: Principal) -> None:
    assert settings.get(principal) == settings.DEFAULT
    parsed = settings.parse(0.5, {"user": 2, "name": 1.0}, 20, 7)
    assert (parsed.weights.user, parsed.weights.program, parsed.night) == (2.0, 0.0, (20, 7))
    assert settings.parse(1, {}, 0, 0).weights == Weights()
    settings.update(principal, "", parsed)
    assert settings.get(principal) == settings.get(principal, "anything") == parsed
    for field, values in {
        "threshold": (1.1, {}, 0, 0),
        "weights.colour": (0.5, {"colour": 1}, 0, 0),
        "weights.user": (0.5, {"user": -1.0}, 0, 0),
        "weights": (0.5, {"user": 0}, 0, 0),
        "night_from": (0.5, {}, 24, 0),
        "night_until": (0.5, {}, 0, True),
    }.items():
        with pytest.raises(InvalidInput) as caught:
            settings.parse(*values)
        assert caught.value.data["field"] == field
    for index in range(settings.MOST_CLUSTERS - 1):
        settings.update(principal, f"c{index}", settings.DEFAULT)
    refused("too_many_settings", lambda: settings.update(principal, "more", settings.DEFAULT))
    settings.update(principal, "c0", parsed)
    assert settings.get(principal, "c0") == parsed
