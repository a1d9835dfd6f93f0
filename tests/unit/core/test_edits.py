"""Edits of a space: what is searched afterwards, and how an earlier configuration counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.edits import Edit, EditedSpace
from service.core.errors import InvalidInput
from service.core.parameters import identity
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
)
from service.testing.random_spaces import configurations_of, edits_of, spaces

THREADS = IntParameter("threads", 1, 16, default=8)
HUGE = BoolParameter("huge", default=False)
PAGES = IntParameter("pages", 1, 4, default=2, condition=Condition("huge", (True,)))
LEVEL = CategoricalParameter("level", ("O1", "O2", "O3"))
CACHE = {"name": "cache", "type": "int", "min": 1, "max": 64, "default": 4}
FIRST = EditedSpace(Space.build([THREADS, HUGE, PAGES, LEVEL], ["threads <= 12 or level != 'O1'"]))
TRIAL: Configuration = {"threads": 8, "huge": True, "pages": 3, "level": "O2"}


def edit(space: EditedSpace, **parts: Any) -> EditedSpace:
    return space.edited(Edit.parse(parts))


def refusal(space: EditedSpace, **parts: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        edit(space, **parts)
    return caught.value


def test_an_added_parameter_has_its_default_in_earlier_trials() -> None:
    found = edit(FIRST, add=[CACHE])
    assert found.searched.names() == ("threads", "huge", "pages", "level", "cache")
    assert found.present(TRIAL) == {**TRIAL, "cache": 4}
    assert found.present({**TRIAL, "cache": 9}) == {**TRIAL, "cache": 9}
    assert (found.is_imputed(TRIAL), found.is_imputed({**TRIAL, "cache": 4})) == (True, False)


def test_an_added_conditional_parameter_counts_only_where_it_is_active() -> None:
    found = edit(FIRST, add=[{**CACHE, "condition": {"parent": "level", "values": ["O3"]}}])
    assert found.present(TRIAL) == TRIAL
    assert found.present({**TRIAL, "level": "O3"}) == {**TRIAL, "level": "O3", "cache": 4}
    assert not found.is_imputed(TRIAL)


def test_trials_with_another_value_of_a_removed_parameter_are_left_out() -> None:
    found = edit(FIRST, remove={"pages": 3})
    assert found.searched.names() == ("threads", "huge", "level")
    kept = {name: value for name, value in TRIAL.items() if name != "pages"}
    assert found.present(TRIAL) == kept
    assert (found.present({**TRIAL, "pages": 2}), found.misfit({**TRIAL, "pages": 2})) == (None, "pages")
    # It had no effect where it was not active.
    without: Configuration = {"threads": 8, "huge": False, "level": "O2"}
    assert found.present(without) == without


def test_a_removed_parameter_has_its_default_unless_a_value_is_given() -> None:
    assert edit(FIRST, remove={"pages": None}).left == {"pages": 2}
    fixed = edit(FIRST, fix={"pages": 4})
    assert edit(fixed, remove={"pages": None}).left == {"pages": 4}
    plain = EditedSpace(Space.build([THREADS, LEVEL]))
    error = refusal(plain, remove={"level": None})
    assert (error.code, error.data["field"]) == ("default_needed", "remove.level")


def test_a_fixed_parameter_is_listed_with_one_value_and_is_freed_again() -> None:
    found = edit(FIRST, fix={"threads": 4.0})
    assert [one.size() for one in found.searched.parameters] == [1, 2, 4, 3]
    assert (found.searched.default()["threads"], found.searched.has_explicit_default) == (4, True)
    assert found.present(TRIAL) is None
    assert found.present({**TRIAL, "threads": 4}) == {**TRIAL, "threads": 4}
    freed = edit(found, free=["threads"])
    assert repr(freed.to_json()) == repr(FIRST.to_json())


def test_what_can_never_be_active_is_not_searched_while_its_parent_is_fixed() -> None:
    off = edit(FIRST, fix={"huge": False})
    assert off.searched.names() == ("threads", "huge", "level")
    assert off.present({"threads": 1, "huge": False, "level": "O1"}) is not None
    assert off.misfit(TRIAL) == "huge"
    on = edit(off, fix={"huge": True})
    assert on.searched["pages"].condition == Condition("huge", (True,))
    assert on.present(TRIAL) == TRIAL
    assert edit(on, free=["huge"]).searched == FIRST.searched


def test_a_removed_parameter_comes_back_with_the_value_that_it_had() -> None:
    gone = edit(FIRST, remove={"pages": 3})
    between: Configuration = {"threads": 8, "huge": True, "level": "O2"}
    back = edit(gone, add=[PAGES.to_json()])
    assert (back.present(between), back.removed) == ({**between, "pages": 3}, {})
    assert back.present({**TRIAL, "pages": 2}) == {**TRIAL, "pages": 2}
    error = refusal(gone, add=[{**PAGES.to_json(), "condition": None}])
    assert (error.code, error.data["field"]) == ("declaration_differs", "add[0].condition")
    # Trials without it would count with two values.
    error = refusal(back, remove={"pages": 4})
    assert (error.code, error.data["field"]) == ("value_differs", "remove.pages")


def test_the_default_configuration_stays_when_the_only_given_default_is_removed() -> None:
    found = edit(EditedSpace(Space.build([THREADS, LEVEL])), remove={"threads": 3})
    assert found.searched.default() == {"level": "O1"}
    assert found.searched.has_explicit_default


@pytest.mark.parametrize(
    ("parts", "code", "field"),
    [
        ({}, "invalid_argument", "edit"),
        ({"swap": {}}, "invalid_argument", "edit.swap"),
        ({"fix": {"level": "O4"}}, "invalid_argument", "fix.level"),
        ({"fix": {"depth": 1}}, "unknown_parameter", "fix.depth"),
        ({"free": ["depth"]}, "unknown_parameter", "free[0]"),
        ({"free": "threads"}, "invalid_argument", "free"),
        ({"remove": {"depth": 1}}, "unknown_parameter", "remove.depth"),
        ({"remove": {"huge": None}}, "parameter_in_use", "remove.huge"),
        ({"remove": {"threads": 8}}, "parameter_in_use", "remove.threads"),
        ({"remove": {"pages": 9}}, "invalid_argument", "remove.pages"),
        ({"add": [{**CACHE, "default": None}]}, "default_needed", "add[0].default"),
        ({"add": [{**CACHE, "min": 99}]}, "invalid_argument", "add[0].min"),
        ({"add": [CACHE, CACHE]}, "invalid_argument", "edit"),
        ({"add": [{**CACHE, "name": "level"}]}, "invalid_argument", "add[0].name"),
        (
            {"add": [{**CACHE, "condition": {"parent": "no", "values": [1]}}]},
            "invalid_argument",
            "add[0].condition.parent",
        ),
        ({"fix": {"threads": 1}, "free": ["threads"]}, "invalid_argument", "edit"),
        (
            {"fix": {"threads": 1, "huge": False, "level": "O1"}},
            "nothing_to_search",
            "edit",
        ),
    ],
)
def test_a_refused_edit_names_its_field(parts: Mapping[str, Any], code: str, field: str) -> None:
    error = refusal(FIRST, **parts)
    assert (error.code, error.data["field"]) == (code, field)
    assert error.message


def test_parameters_may_be_removed_together_with_those_that_depend_on_them() -> None:
    found = edit(FIRST, remove={"huge": True, "pages": 3})
    assert found.searched.names() == ("threads", "level")
    assert found.present(TRIAL) == {"threads": 8, "level": "O2"}
    assert found.misfit({"threads": 8, "huge": False, "level": "O2"}) == "huge"


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[EditedSpace], list[Edit]]:
    """Generate a space and the spaces after one to three edits, with these edits."""
    found, edits = [EditedSpace(draw(spaces()))], []
    for _ in range(draw(st.integers(1, 3))):
        wanted = draw(edits_of(found[-1]))
        try:
            found.append(found[-1].edited(wanted))
        except InvalidInput as error:
            assume(error.code == "nothing_to_search")
            assume(False)
        edits.append(wanted)
    return found, edits


def is_valid(space: Space, configuration: Configuration) -> bool:
    return repr(space.validate(configuration)) == repr(configuration)


@given(histories(), st.data())
def test_every_configuration_counts_by_the_stated_rule(
    history: tuple[list[EditedSpace], list[Edit]], data: st.DataObject
) -> None:
    """The rule is written down again here, without conditions: values that a trial has are never changed."""
    found, _ = history
    last = found[-1]
    for space in found:
        trial = data.draw(configurations_of(space.searched))
        present = last.present(trial)
        assert (present is None) == (last.misfit(trial) is not None)
        moved = [
            name
            for name, value in {**last.left, **last.fixed}.items()
            if name in trial and identity(trial[name]) != identity(value)
        ]
        if moved:
            assert last.misfit(trial) in moved
        if present is None:
            # Also a fixed parameter that the trial lacks and had another value of.
            lacking = [name for name in last.fixed if name not in trial and name in last.added]
            assert moved or lacking
            continue
        assert is_valid(last.searched, present)
        for name, value in present.items():
            assert identity(value) == identity(trial[name] if name in trial else last.absent[name])
        assert set(trial) - set(present) <= set(last.removed)


@given(histories())
def test_an_edit_that_is_made_again_changes_nothing(history: tuple[list[EditedSpace], list[Edit]]) -> None:
    found, edits = history
    once = found[-1]
    assert repr(once.edited(edits[-1]).to_json()) == repr(once.to_json())
    assert Edit.parse(json.loads(json.dumps(edits[-1].to_json()))) == edits[-1]


@given(histories())
def test_an_edited_space_comes_back_from_its_json(history: tuple[list[EditedSpace], list[Edit]]) -> None:
    for space in history[0]:
        again = EditedSpace.from_json(json.loads(json.dumps(space.to_json())))
        assert repr(again) == repr(space)
        assert repr(again.searched) == repr(space.searched)


@given(histories())
def test_default_and_sizes_of_the_searched_space(history: tuple[list[EditedSpace], list[Edit]]) -> None:
    for space in history[0]:
        searched = space.searched
        assert is_valid(searched, searched.default())
        for name, value in space.fixed.items():
            if name in searched.names():
                assert identity(searched[name].default_value()) == identity(value)
                assert searched[name].size() == 1


def test_a_continuum_is_fixed_and_freed() -> None:
    x: Parameter = FloatParameter("x", 1e-3, 10.0, log=True)
    found = edit(EditedSpace(Space.build([x, LEVEL])), fix={"x": 0.1})
    assert found.searched["x"].size() == 1
    assert found.present({"x": 0.1, "level": "O1"}) == {"x": 0.1, "level": "O1"}
    assert edit(found, free=["x"]).searched["x"] == x


def test_an_optional_parameter_is_added_without_a_value_in_earlier_trials() -> None:
    found = edit(FIRST, add=[{"name": "cache", "type": "int", "min": 1, "max": 64, "optional": True}])
    assert found.present(TRIAL) == TRIAL
    assert found.present({**TRIAL, "cache": 9}) == {**TRIAL, "cache": 9}
    assert (found.absent, found.is_imputed(TRIAL)) == ({}, False)
    # It has no default, so the default configuration stays the same.
    assert found.searched.default() == FIRST.searched.default()


def test_an_optional_parameter_that_is_added_again_is_declared_anew() -> None:
    cache = {"name": "cache", "type": "int", "min": 1, "max": 9, "step": 2, "optional": True}
    first = edit(FIRST, add=[cache])
    wider = edit(first, add=[{**cache, "min": 0, "step": 1, "condition": {"parent": "level", "values": ["O3"]}}])
    assert wider.searched.names() == first.searched.names()
    assert wider.present({**TRIAL, "level": "O3", "cache": 4}) == {**TRIAL, "level": "O3", "cache": 4}
    assert wider.misfit({**TRIAL, "cache": 4}) is not None
    assert repr(edit(wider, add=[wider.declared["cache"].to_json()]).to_json()) == repr(wider.to_json())
    # Trials have relied on the type, and a parameter that is not optional keeps its declaration.
    assert refusal(first, add=[{**cache, "type": "float"}]).data["field"] == "add[0].name"
    assert refusal(first, add=[{**cache, "optional": False}]).data["field"] == "add[0].name"
    assert refusal(FIRST, add=[{**LEVEL.to_json(), "optional": True}]).data["field"] == "add[0].name"


def test_a_removed_optional_parameter_comes_back_with_another_condition() -> None:
    cache = {"name": "cache", "type": "int", "min": 1, "max": 9, "default": 3, "optional": True}
    gone = edit(edit(FIRST, add=[cache]), remove={"cache": 3})
    back = edit(gone, add=[{**cache, "condition": {"parent": "level", "values": ["O3"]}}])
    assert (back.absent, back.removed) == ({}, {})
    assert back.present({**TRIAL, "level": "O3"}) == {**TRIAL, "level": "O3"}
