"""A worker computes suggestions of `gp` while clients ask and tell: nothing is lost, and nothing is counted twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

import pytest
from django.db import connection

from service.planning.create import create_study
from service.studies import selectors
from service.studies.models import Operation, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.tell import complete_trial
from service.workers import compute
from tests.factories.domain import make_spec, study_name
from tests.factories.patience import PATIENCE, wait_for

CLIENTS, ROUNDS = 4, 3


def test_clients_and_a_worker_change_a_study_at_once(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: SimpleQueue[object] = SimpleQueue()
    monkeypatch.setattr(messages, "send", sent.put)
    study = create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name
    done = threading.Event()

    def work() -> None:
        try:
            while not done.is_set():
                try:
                    sent.get(timeout=0.05)
                except Empty:
                    continue
                compute.compute_next()
        finally:
            connection.close()

    def tune(client: int) -> list[int]:
        reported = []
        try:
            for round_ in range(ROUNDS):
                asked = ask_trials(principal, study, client_id=f"c{client}", request_id=f"{client}-{round_}")
                (trial,) = finished(principal, asked.operation)
                complete_trial(principal, study, trial.number, metrics={"seconds": 1.0 + trial.params["x"]})
                reported.append(trial.number)
        finally:
            connection.close()
        return reported

    def watch() -> dict[int, list[str]]:
        seen: dict[int, list[str]] = {}
        revision = 0
        try:
            while True:
                last = done.is_set()
                changes = selectors.changes(principal, study, revision)
                revision = changes.revision
                for trial in changes.trials:
                    seen.setdefault(trial.number, []).append(trial.state)
                if last and not changes.trials:
                    return seen
                time.sleep(0.01)
        finally:
            connection.close()

    with ThreadPoolExecutor(CLIENTS + 2) as threads:
        try:
            watched, worker = threads.submit(watch), threads.submit(work)
            reported = [one.result(PATIENCE) for one in [threads.submit(tune, client) for client in range(CLIENTS)]]
        finally:
            done.set()
        worker.result(PATIENCE)
        seen = watched.result(PATIENCE)

    total = CLIENTS * ROUNDS
    assert sorted(number for numbers in reported for number in numbers) == list(range(1, total + 1))
    trials = list(access.rows(Trial, principal).order_by("number"))
    assert [(trial.number, trial.state) for trial in trials] == [(n, "COMPLETED") for n in range(1, total + 1)]
    after = selectors.get_study(principal, study)
    assert (after.trial_count, after.finished_count, after.open_count) == (total, total, 0)
    operations = list(access.rows(Operation, principal))
    assert [operation.state for operation in operations] == ["SUCCEEDED"] * total
    assert sorted(number for one in operations for number in one.trial_numbers) == list(range(1, total + 1))
    # Each change took one revision and wrote one entry: creation, asks, results of the worker, reports.
    actions = Counter(access.rows(AuditEntry, principal).values_list("action", flat=True))
    assert actions == {
        "study.create": 1,
        "study.suggest": total,
        "operation.succeed": total,
        "trial.complete": total,
    }
    assert after.revision == actions.total()
    # A watcher that reads by revision has missed no result.
    assert {number: states[-1] for number, states in seen.items()} == dict.fromkeys(range(1, total + 1), "COMPLETED")
    assert access.rows(DesignerState, principal).get(study__name=study).state is not None


def finished(principal: Principal, operation: Operation) -> list[Trial]:
    """Return the trials of an operation once a worker has computed them."""

    def computed() -> list[list[Trial]]:
        found = selectors.get_operation(principal, operation.id)
        return [] if found.operation.state in ("PENDING", "RUNNING", "STALE") else [found.trials]

    (trials,) = wait_for(computed)
    return trials
