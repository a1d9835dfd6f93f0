"""The gallery says what the components and their pages say."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from docs._ext.pages import ROOT
from service.planning.gallery import Entry, Evidence, gallery
from trimtab_agent import shipped

ENTRIES = gallery().entries


def figure(entry: Entry) -> str:
    """Return the figure as the page of the component has it."""
    if entry.evidence is Evidence.PROVEN:
        return f"{entry.gain:g} % ({entry.low} to {entry.high})"
    if entry.evidence is Evidence.NO_GAIN:
        return f"({entry.low} to {entry.high})"
    return f"-{entry.gain:g} % (-{entry.high} to -{entry.low})"


@pytest.mark.parametrize(
    "entry", [one for one in ENTRIES if one.low is not None], ids=lambda one: f"{one.component}/{one.study}"
)
def test_the_page_of_the_component_has_the_same_figure(entry: Entry) -> None:
    page = (ROOT / "agents/workloads" / entry.component / "README.md").read_text()
    assert figure(entry) in re.sub(r"\s+", " ", page)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: f"{one.component}/{one.study}")
def test_an_entry_starts_the_study_of_its_component(entry: Entry) -> None:
    folder = shipped.workload(entry.component)
    assert f"component: {entry.component}\n" in entry.text
    assert entry.text == (folder / entry.study).read_text()
    assert {one.name for one in entry.packages} == {one.package for one in shipped.needs(folder)}
    assert (entry.gain is None) == (entry.evidence is Evidence.UNKNOWN)
    if entry.low is not None:
        assert entry.gain is not None
        assert entry.high is not None
        assert entry.low <= entry.gain <= entry.high


def test_no_study_is_listed_twice() -> None:
    assert max(Counter((one.component, one.study) for one in ENTRIES).values()) == 1
