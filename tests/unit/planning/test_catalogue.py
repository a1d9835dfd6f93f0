import json
import sys
from pathlib import Path

import pytest

from service.core.errors import InvalidInput
from service.planning import study_file
from service.planning.catalogue import catalogue
from service.studies.specs import parse
from service.tenancy.principal import Principal
from service.trials.method import completed
from tests.factories.study_files import BASE

ROOT = Path(__file__).resolve().parents[3]


def test_the_catalogue_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def docs() -> dict[str, str]:
        return {entry.name: entry.doc for entry in catalogue().algorithms}

    complete = docs()
    assert "extra `tpe`" in complete["tpe"]
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert docs() == {
        **complete,
        "tpe": f"Not installed here (pip install 'trimtab-service[tpe]'). {complete['tpe']}",
    }


def test_the_console_has_each_note_in_german() -> None:
    """The file has the service's texts as keys, so that a changed text needs a new translation."""
    found = catalogue()
    entries = [*found.algorithms, *found.resampling, *found.estimators, *found.pruning, *found.stopping]
    notes = {note for entry in entries for note in (entry.doc, *(option.doc for option in entry.options)) if note}
    german = json.loads((ROOT / "web/src/locales/methods.de.json").read_text())
    assert german.keys() == notes
    assert all(german.values())


def test_a_new_study_cannot_have_an_algorithm_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    file = study_file.read(Principal.system(1), BASE + "algorithm: tpe\n", offered_space=lambda *_: None)
    spec = parse(file.spec)
    assert completed(spec).algorithm.options["candidates"] == 24
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InvalidInput, match=r"pip install 'trimtab-service\[tpe\]'"):
        completed(spec)
