"""A component file is judged alike where it is written (the service) and where it is installed (the agent's loader)."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.fleet import component_files
from tests.factories.component_texts import BAD, FILES, FULL, IN_FOLDER, faulty
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.errors import ComponentError

WORKLOADS = sorted((Path(__file__).parents[2] / "agents/workloads").glob("*/component.yaml"))
Reported = list[tuple[int, int, str, str]]


def by_the_agent(folder: Path, text: str) -> Reported:
    (folder / "component.yaml").write_text(text)
    for name, content in FILES.items():
        (folder / name.replace("__", ".")).write_text(content)
    try:
        load(folder / "component.yaml", Generator(folder / "generated"))
    except ComponentError as error:
        return sorted((one.line, one.column, one.field, one.message) for one in error.problems)
    return []


def by_the_service(text: str) -> Reported:
    found = component_files.check(text).problems
    return sorted((one.line, one.column, one.field, one.message) for one in found)


@pytest.mark.parametrize(("text", "line", "field", "words"), BAD)
def test_the_service_and_the_agent_report_the_same_problems(
    tmp_path: Path, text: str, line: int, field: str, words: str
) -> None:
    reported = by_the_service(text)
    assert reported == by_the_agent(tmp_path, text)
    assert any((line, field) == (one[0], one[2]) and words in one[3] for one in reported), reported


@pytest.mark.parametrize(("text", "line", "field", "words"), IN_FOLDER)
def test_the_service_names_checks_that_need_the_folder(
    tmp_path: Path, text: str, line: int, field: str, words: str, programs_start: None
) -> None:
    assert [one[2] for one in by_the_agent(tmp_path, text)] == [field]
    checked = component_files.check(text)
    assert not checked.problems
    assert checked.unseen


@pytest.mark.parametrize("text", [FULL, faulty("{type: boolean, default: true, env: P}")])
def test_agent_and_service_accept_the_same_files(tmp_path: Path, text: str) -> None:
    assert by_the_agent(tmp_path, text) == []
    assert by_the_service(text) == []


@pytest.mark.parametrize("file", WORKLOADS, ids=lambda file: file.parent.name)
def test_the_service_accepts_the_components_shipped_with_the_agent(file: Path) -> None:
    checked = component_files.check(file.read_text())
    assert not checked.problems
    assert checked.name == file.parent.name


number = st.one_of(
    st.integers(-5, 70), st.sampled_from([0.1, 0.25, 0.5, 1.5, 2.0, 1e-6, 1e300, 2**62, 2**63, -(2**63), 1e-300])
)
ranges = st.fixed_dictionaries(
    {"type": st.sampled_from(["int", "float"]), "min": number, "max": number, "default": number},
    optional={"log": st.just("true"), "step": number, "factor": st.sampled_from([1, 1.1, 1.5, 2, 3, 10, 1e200])},
)
choices = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["ordinal", "categorical"]),
        "values": st.lists(st.one_of(number, st.sampled_from(["true", "a", "'1'"])), max_size=4),
        "default": number,
    }
)
conditions = st.one_of(
    st.none(), st.fixed_dictionaries({"parent": st.sampled_from(["p0", "p1"]), "values": st.just([1])})
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([({"type": "float", "min": 0, "max": 1, "default": 0, "step": 1e-300}, None)])
@given(st.lists(st.tuples(st.one_of(ranges, choices), conditions), min_size=1, max_size=2))
def test_a_space_that_the_loader_accepts_is_one(given_: Sequence[tuple[dict[str, object], object]]) -> None:
    text = "name: c\napplications: {main: {command: [run]}}\nparameters:\n"
    for index, (fields, condition) in enumerate(given_):
        written = {**fields, "env": f"P{index}", **({} if condition is None else {"condition": condition})}
        text += f"  p{index}: {_flow(written)}\n"
    checked = component_files.check(text)
    refused = [one for one in checked.problems if one.message.startswith("a study would be refused: ")]
    # The agent's own loader accepts such a file, but the service could not create a study with it.
    assert not refused, (text, refused)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=200), st.text("name: {}[]&*-\n#'\"applications", max_size=200)))
def test_no_text_breaks_the_check(text: str) -> None:
    if "\0" not in text:
        component_files.check(text)


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else str(value)
