import ast
import json
import re
from pathlib import Path

import pytest

from service.core.reasons import Reason, data_of, joined, restored, stored

ROOT = Path(__file__).resolve().parents[3]
LATE = Reason("It ran for longer than 5 s.", "ran_too_long", seconds=5.0)


def test_a_reason_is_its_text_and_comes_back_with_its_code() -> None:
    assert LATE == "It ran for longer than 5 s."
    kept = json.loads(json.dumps(stored(LATE)))
    assert data_of(LATE, kept) == {"code": "ran_too_long", "values": {"seconds": 5.0}}
    again = restored(str(LATE), kept)
    assert isinstance(again, Reason)
    assert (again, again.data) == (LATE, LATE.data)


def test_a_sentence_of_a_person_has_no_code() -> None:
    assert stored("The disk is full.") is None
    assert data_of("The disk is full.", None) is None
    assert type(restored("The disk is full.", None)) is str


def test_a_code_is_left_out_where_the_text_was_changed_without_it() -> None:
    assert data_of("A process of an earlier version has written this.", stored(LATE)) is None
    assert data_of("", stored(LATE)) is None


def test_a_code_stands_for_the_first_line() -> None:
    failed = Reason("ended with exit code 3\nno such file", "application_failed", exit_code="3", text="any name")
    assert data_of(f"{failed.partition(chr(10))[0]}\nother output", stored(failed)) == failed.data


@pytest.mark.parametrize(
    ("others", "code"), [(["Nothing was measured."], None), ([Reason("Nothing.", "nothing_measured")], "joined")]
)
def test_several_sentences_have_a_code_if_each_has_one(others: list[str], code: str | None) -> None:
    both = joined([LATE, *others])
    assert both == " ".join([LATE, *others])
    assert (both.code if isinstance(both, Reason) else None) == code
    if isinstance(both, Reason):
        assert both.values == {"parts": [LATE.data, {"code": "nothing_measured", "values": {}}]}


def test_the_console_has_a_sentence_for_each_code() -> None:
    known = set(re.findall(r'case "(\w+)":', (ROOT / "web/src/lib/reasons.ts").read_text()))
    # The second argument of a reason of the service, and the third of one of the agent.
    used = _codes(ROOT / "service", "Reason", 1) | _codes(ROOT / "agents/trimtab_agent/supervisor", "TrialOverError", 2)
    assert {"agents_busy", "budget_done", "model_saves", "application_failed"} <= used
    # The conditions and the advice of a verdict stand with the sentences of verdicts.
    of_verdicts = set(re.findall(r'"(\w+)"', (ROOT / "web/src/lib/verdicts.ts").read_text()))
    assert used == known | used & of_verdicts


def _codes(folder: Path, name: str, place: int) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if "_gen" not in path.parts else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name and len(node.args) > place:
                code = node.args[place]
                parts = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
                found |= {str(part.value) for part in parts if isinstance(part, ast.Constant)}
    return found
