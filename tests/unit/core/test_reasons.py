import ast
import json
import re
from pathlib import Path

import pytest

from service.core.reasons import Reason, data_of, joined, restored, stored

ROOT = Path(__file__).resolve().parents[3]
# Why no pair of jobs begins with a job: an agent's log has them, and no page.
TO_AGENTS = {
    "live_near_time_limit",
    "live_new_kind",
    "live_no_pair_waits",
    "live_no_study",
    "live_no_time_limit",
    "live_no_trial",
    "live_pairs_open",
    "live_record_changed",
}
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
    assert used - TO_AGENTS == known | used & of_verdicts
    assert used > TO_AGENTS


def _codes(folder: Path, name: str, place: int) -> set[str]:
    """Return the codes that calls of `name` have at this place: strings, constants of the folder, or one of two."""
    trees = [ast.parse(path.read_text()) for path in folder.rglob("*.py") if "_gen" not in path.parts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    constants: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            (names, values) = (getattr(part, "elts", [part]) for part in (node.targets[0], node.value))
            constants |= {to.id: it.value for to, it in zip(names, values, strict=False) if _is_text(to, it)}
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name and len(node.args) > place:
            given = node.args[place]
            for part in [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]:
                named = constants.get(getattr(part, "id", "") or getattr(part, "attr", ""))
                if code := part.value if isinstance(part, ast.Constant) else named:
                    found.add(str(code))
    return found


def _is_text(name: ast.expr, value: ast.expr) -> bool:
    return isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str)
