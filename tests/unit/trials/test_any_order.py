"""The counters of a study stay correct in any order of calls."""

from __future__ import annotations

import pytest
from django.db.models import Max
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core.errors import TrimtabError
from service.fleet import heartbeats, runs
from service.fleet.grants import Grant, acquire
from service.fleet.models import Lease
from service.planning import space_changes
from service.planning.create import create_study, delete_study, update_state
from service.studies import selectors
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import add_trial, complete_trial, fail_trial, stop_trial
from service.workers import sweep
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import AGENT, expire, register

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "ask",
                "ask",
                "tell",
                "tell",
                "fail",
                "stop",
                "add",
                "pause",
                "resume",
                "acquire",
                "acquire",
                "settle",
                "settle",
                "break",
                "release",
                "expire",
                "renew",
                "sweep",
                "ranges",
            ]
        ),
        st.integers(1, 12),
    ),
    max_size=25,
)


def take_step(principal: Principal, study: str, grants: list[Grant], step: str, number: int) -> None:
    grant = grants[number % len(grants)] if grants else None
    metrics = {"seconds": float(number)}
    match step:
        case "ask":
            ask_trials(principal, study, count=number % 3 + 1, client_id=f"c{number % 2}")
        case "tell":
            complete_trial(principal, study, number, metrics=metrics)
        case "fail":
            fail_trial(principal, study, number, infeasible=number % 2 == 0)
        case "stop":
            stop_trial(principal, study, number)
        case "add":
            add_trial(principal, study, params={"x": 0.5, "n": number}, metrics=metrics)
        case "pause":
            update_state(principal, study, "PAUSED")
        case "resume":
            update_state(principal, study, "ACTIVE")
        case "acquire":
            grants += acquire(principal, agent_id=AGENT, count=number % 3 + 1, held=[one.lease for one in grants])
        case "settle" if grant is not None:
            runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome="completed", metrics=metrics)
        case "break" if grant is not None:
            runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome="failed")
        case "release" if grant is not None:
            runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome="released")
        case "renew":
            heartbeats.renew(principal, agent_id=AGENT, leases=[one.lease for one in grants])
        case "expire":
            expire(principal)
        case "sweep":
            sweep.sweep()
        case "ranges":
            space_changes.change_space(principal, study, {"x": {"min": number / 13}, "n": {"max": number + 3}})


def check_books(principal: Principal, name: str) -> None:
    study: Study = selectors.get_study(principal, name)
    trials = list(access.rows(Trial, principal).filter(study_id=study.pk).order_by("number"))
    states = [trial.state for trial in trials]
    assert [trial.number for trial in trials] == list(range(1, study.trial_count + 1))
    assert study.requested_count == states.count("REQUESTED")
    assert study.active_count == states.count("ACTIVE")
    assert study.finished_count == len(states) - study.open_count
    withdrawn = sum(trial.reason == space_changes.WITHDRAWN for trial in trials)
    assert study.added_count == sum(trial.origin == "added" for trial in trials) + withdrawn
    assert all(
        (trial.metrics is not None) == (trial.state == "COMPLETED") or trial.state == "PRUNED" for trial in trials
    )
    assert all((trial.finished_at is None) == (trial.state in ("REQUESTED", "ACTIVE")) for trial in trials)
    assert study.trial_count - study.added_count <= 8
    if study.finished_count - study.added_count >= 8:
        assert study.state == "COMPLETED"
    newest = access.rows(Trial, principal).filter(study_id=study.pk).aggregate(newest=Max("revision"))["newest"]
    assert (newest or 0) <= study.revision
    held = access.rows(Lease, principal).filter(study_id=study.pk, state="HELD")
    if study.component:
        running = {trial.pk for trial in trials if trial.state == "ACTIVE"}
        assert running <= set(held.values_list("trial_id", flat=True))
        assert study.active_count <= 2
        if study.state == "ACTIVE":
            assert study.open_count == min(3, 8 - (study.finished_count - study.added_count))
    else:
        assert not held.exists()


@pytest.mark.parametrize("on_agents", [False, True])
def test_the_books_balance_after_every_step(principal: Principal, on_agents: bool) -> None:
    register(principal)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def run(steps: list[tuple[str, int]]) -> None:
        execution = make_execution(parallelism=2) if on_agents else None
        spec = make_spec(budget={"max_trials": 8}, execution=execution)
        name = create_study(principal, study_name(), spec).name
        grants: list[Grant] = []
        last = 0
        for step, number in steps:
            was = selectors.get_study(principal, name)
            try:
                take_step(principal, name, grants, step, number)
            except TrimtabError:
                # What is refused changes nothing.
                assert selectors.get_study(principal, name).revision == was.revision
            check_books(principal, name)
            study = selectors.get_study(principal, name)
            if step == "ranges":
                last = was.trial_count
            made = [trial for trial in selectors.all_trials(principal, study) if trial.number > last]
            assert all(spec_of(study).space.inside(trial.params) for trial in made)
        delete_study(principal, name)

    run()
