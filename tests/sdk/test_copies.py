"""Pickles and copies of clients, studies and what they return: addresses and values without secrets."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import make_study
from trimtab.errors import InvalidInput, NotFound, Unauthenticated
from trimtab.study import Study

TOKEN = "trm_the-secret-of-a-test"
WAYS: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
LOADED = """
import pickle, sys
import trimtab
study = pickle.load(open(sys.argv[1], "rb"))
try:
    [trial] = study.ask()
    print(study.client_id, study.tell(trial, 1.0).number)
except trimtab.errors.Unauthenticated as error:
    print(error.code, error)
"""


@pytest.mark.parametrize("again", WAYS)
def test_a_copy_in_the_same_process_is_the_same_client(client: trimtab.Client, study: Study, again: Any) -> None:
    [trial] = study.ask()
    other = again(study)
    assert (other.name, other.uid, other.client_id, other.spec) == (study.name, study.uid, study.client_id, study.spec)
    # They hold the same trials, so that neither gets those of the other.
    [second] = other.ask()
    assert second.number != trial.number
    assert again(client).client_id == client.client_id
    assert again(client).get_study(study.name).tell(second, 1.0).state == "COMPLETED"
    assert again(client.matching).records() == client.matching.records()


@pytest.mark.parametrize("client_id", [None, "mine"])
def test_a_study_in_another_process_has_a_name_of_its_own(
    embedded_service: EmbeddedService, client: trimtab.Client, study: Study, client_id: str | None, tmp_path: Path
) -> None:
    study = client.get_study(study.name, client_id=client_id)
    [mine] = study.ask()
    (tmp_path / "study").write_bytes(pickle.dumps(study))
    command = [sys.executable, "-c", LOADED, str(tmp_path / "study")]
    bare = {name: value for name, value in os.environ.items() if name != "TRIMTAB_TOKEN"}
    bare["XDG_CONFIG_HOME"] = str(tmp_path)
    with_token = {**bare, "TRIMTAB_TOKEN": embedded_service.token}
    answers = [
        subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        for env in (with_token, bare)
    ]
    name, number = answers[0].split()
    assert name != study.client_id
    assert name.startswith(client_id or "")
    assert int(number) != mine.number
    assert answers[1].startswith("missing_token")
    assert "set TRIMTAB_TOKEN in its environment" in answers[1]


def test_a_pickle_contains_no_secret() -> None:
    with trimtab.Client("127.0.0.1:1", TOKEN, tenant="t", client_id="mine") as client:
        for one in (client, client.matching):
            assert TOKEN.encode() not in pickle.dumps(one)
            assert TOKEN.encode() not in pickle.dumps(one, protocol=0)
            assert TOKEN not in repr(one)


def test_a_pickled_study_contains_no_secret(embedded_service: EmbeddedService, study: Study) -> None:
    assert embedded_service.token.encode() not in pickle.dumps(study)


def test_the_pickle_of_a_closed_client_needs_a_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRIMTAB_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with trimtab.Client("127.0.0.1:1", TOKEN) as client:
        data = pickle.dumps(client)
    with pytest.raises(Unauthenticated, match="A pickled client contains no token"):
        pickle.loads(data).who_am_i()
    monkeypatch.setenv("TRIMTAB_TOKEN", TOKEN)
    loaded = pickle.loads(pickle.dumps(client))
    assert loaded.address == client.address


def test_values_survive_a_pickle(study: Study) -> None:
    [trial] = study.ask()
    study.report(trial, step=1, metrics=2.0)
    study.tell(trial, 1.0)
    detail = study.trial(trial.number)
    found = [study.spec, study.status, detail, study.recommendation, study.verdict, study.set_user_attr(trial, "a", 1)]
    for one in found:
        assert dataclasses.is_dataclass(one)
        for again in WAYS:
            assert again(one) == one


# --- identities


def test_a_trial_of_another_study_is_refused(client: trimtab.Client, study: Study) -> None:
    other = make_study(client, f"{study.name}-2")
    [foreign] = study.ask()
    [own] = other.ask()
    calls: list[Callable[[], Any]] = [
        lambda: other.tell(foreign, 1.0),
        lambda: other.tell(foreign, failed="broken"),
        lambda: other.tell_many([(own, 1.0), (foreign, 1.0)]),
        lambda: other.report(foreign, step=1, metrics=1.0),
        lambda: other.stop_trial(foreign),
        lambda: other.note(foreign, "mine"),
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.code == "trial_of_another_study"
        assert study.name in caught.value.message
        assert other.name in caught.value.message
    assert [trial.state for trial in other.trials()] == ["ACTIVE"]


def test_a_result_of_the_deleted_study_does_not_reach_the_one_of_its_name(client: trimtab.Client, name: str) -> None:
    old = make_study(client, name)
    [stale] = old.ask()
    client.delete_study(name)
    new = make_study(client, name)
    [fresh] = new.ask()
    assert stale.number == fresh.number
    with pytest.raises(InvalidInput, match="another study that had the name"):
        new.tell(stale, 1.0)
    calls: list[Callable[[], Any]] = [
        lambda: old.tell(stale, 1.0),
        lambda: old.tell(stale.number, 1.0),
        lambda: old.report(stale, step=1, metrics=1.0),
        lambda: old.stop_trial(stale),
        old.ask,
        old.refresh,
        old.trials,
        lambda: old.stop("mine"),
        lambda: next(old.watch()),
    ]
    for call in calls:
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.code == "study_replaced"
    assert [(trial.state, trial.metrics) for trial in new.trials()] == [("ACTIVE", {})]
    assert new.tell(fresh, 2.0).metrics == {"seconds": 2.0}
