"""Edits of a study's space over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api.conftest import SPEC, Api
from tests.api.test_agents import register
from tests.api.test_components import COMPONENT

Create = Callable[..., str]
PATH = "/studies/s/space/edits"
CACHE = {"name": "cache", "type": "int", "min": 1, "max": 64, "default": 8}


def edited(api: Api, **edit: Any) -> Any:
    return api.ok("POST", PATH, {"edit": edit})


def test_parameters_are_edited_while_the_search_goes_on(api: Api, study: Create) -> None:
    study()
    for place, n in enumerate((4, 4, 9), start=1):
        body = {"params": {"x": place / 10, "n": n}, "metrics": {"seconds": place}}
        api.ok("POST", "/studies/s/trials", body)
    edit = {"add": [CACHE], "fix": {"n": 4}}
    would = api.ok("POST", PATH, {"edit": edit, "validate_only": True})
    assert would["study"]["space_version"] == 1
    found = api.ok("POST", PATH, {"edit": edit, "request_id": "once"})
    assert found["trials"] == would["trials"]
    assert found["trials"]["left_out"] == {"n": 1}
    assert found["trials"]["text"] == (
        "2 of 3 trials are used, 2 of them with cache = 8 in place of a value that they lack;"
        " 1 had another value of n and is left out."
    )
    assert found["study"] == api.ok("GET", "/studies/s")
    shown = found["study"]
    assert (shown["fixed"], shown["imputed"], shown["removed"]) == ({"n": 4}, {"cache": 8}, {})
    (record,) = shown["space_edits"]
    assert (record["version"], record["added"], record["fixed"], record["trials"]) == (
        2,
        ["cache"],
        {"n": 4},
        found["trials"],
    )
    _, n, cache = shown["spec"]["space"]["parameters"]
    assert (n["min"], n["max"], cache["max"]) == (4, 4, 64)
    assert api.ok("POST", PATH, {"edit": edit, "request_id": "once"}) == found
    for trial in api.ok("POST", "/studies/s/suggestions", {"count": 3})["trials"]:
        assert (trial["params"]["n"], "cache" in trial["params"]) == (4, True)
    analysis = api.ok("GET", "/studies/s/analysis")
    assert analysis["best"][0]["params"] == {"x": 0.1, "n": 4, "cache": 8}
    edited(api, remove={"n": 4})
    header, first = api.client.get("/api/v1/studies/s/trials.csv").getvalue().decode().splitlines()[:2]
    assert header.split(",")[-4:] == ["param:x", "param:cache", "param:n", "reason"]
    assert first.split(",")[-4:] == ["0.1", "", "4", ""]
    rows = api.ok("GET", "/studies/s/table?order=param:n")["trials"]
    assert [row["params"].get("n") for row in rows] == [4] * 5 + [9]
    assert api.ok("GET", "/studies/s/file")["text"].count("cache") == 1
    entry = api.ok("GET", "/audit?action=study.edit_space")["entries"][0]
    assert entry["detail"]["edit"] == {"remove": {"n": 4}}


def test_a_refused_edit_names_its_field(api: Api, study: Create) -> None:
    study()
    for edit, code, field in (
        ({}, "invalid_argument", "edit"),
        ({"fix": {"n": 99}}, "invalid_argument", "fix.n"),
        ({"fix": {"m": 1}}, "unknown_parameter", "fix.m"),
        ({"add": [{**CACHE, "default": None}]}, "default_needed", "add[0].default"),
        ({"add": "cache"}, "invalid_argument", "add"),
        ({"free": ["m"]}, "unknown_parameter", "free[0]"),
        ({"fix": {"x": 0.5, "n": 4}}, "nothing_to_search", "edit"),
    ):
        for only in (True, False):
            refusal = api.refused(400, code, "POST", PATH, {"edit": edit, "validate_only": only})
            assert refusal["data"]["field"] == field
    api.refused(404, "study_not_found", "POST", "/studies/t/space/edits", {"edit": {"fix": {"n": 4}}})
    api.refused(400, "invalid_argument", "POST", PATH, {"edit": {"fix": {"n": 4}}, "budget": {"max_tries": 1}})
    api.ok("PATCH", "/studies/s", {"state": "COMPLETED"})
    api.refused(409, "search_over", "POST", PATH, {"edit": {"fix": {"n": 4}}})
    continued = api.ok("POST", PATH, {"edit": {"fix": {"n": 4}}, "budget": {"max_trials": 50}})["study"]
    assert (continued["state"], continued["spec"]["budget"]["max_trials"]) == ("ACTIVE", 50)


def test_a_component_is_sent_only_what_it_accepts(api: Api) -> None:
    register("a1", components=[COMPONENT])
    x, n = SPEC["space"]["parameters"]
    execution = {"component": "gcc-flags", "application": "small"}
    spec = {**SPEC, "space": {"parameters": [x, {**n, "min": 2, "max": 8}]}, "execution": execution}
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    refusal = api.refused(400, "outside_component", "POST", PATH, {"edit": {"add": [CACHE]}})
    assert refusal["data"]["field"] == "add[0].name"
    default = next(one["default"] for one in COMPONENT["space"] if one["name"] == "n")
    other = default + 1
    refusal = api.refused(400, "outside_component", "POST", PATH, {"edit": {"remove": {"n": other}}})
    assert (refusal["data"]["field"], refusal["data"]["value"]) == ("remove.n", other)
    edited(api, fix={"n": other})
    edited(api, remove={"n": default})
    assert api.ok("GET", "/studies/s")["removed"] == {"n": default}
