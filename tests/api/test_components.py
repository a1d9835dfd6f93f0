from __future__ import annotations

import hashlib
import time
from typing import Any

from tests.api.conftest import SPEC, Api, summarise_all
from tests.api.test_agents import register

COMPONENT: dict[str, Any] = {
    "name": "gcc-flags",
    "digest": "d1",
    "applications": ["small", "large"],
    "description": "Flags.",
    "space": SPEC["space"]["parameters"],
    "metrics": ["seconds"],
}


def test_a_component_lists_its_versions_and_the_agents_that_offer_them(api: Api) -> None:
    assert api.ok("GET", "/components") == {"components": []}
    register("a1", components=[COMPONENT])
    register("a2", components=[COMPONENT])
    register("a3", components=[{**COMPONENT, "digest": "d2"}, {**COMPONENT, "name": "mpi"}])
    first, second = api.ok("GET", "/components")["components"]
    assert (first["name"], second["name"]) == ("gcc-flags", "mpi")
    offered = {one["digest"]: [agent["name"] for agent in one["agents"]] for one in first["versions"]}
    assert {digest: sorted(names) for digest, names in offered.items()} == {"d1": ["a1", "a2"], "d2": ["a3"]}
    detail = api.ok("GET", "/components/mpi")
    assert detail["versions"][0]["space"] == SPEC["space"]["parameters"]
    assert (detail["best"], detail["studies"]) == ([], 0)
    api.refused(404, "component_not_found", "GET", "/components/never")


def test_the_best_settings_are_known_for_each_application(api: Api) -> None:
    def tuned(name: str, application: str, seconds: float) -> None:
        execution = {"component": "gcc-flags", "application": application}
        api.ok("POST", "/studies", {"name": name, "spec": {**SPEC, "noisy": False, "execution": execution}})
        for x, value in ((0.5, 2.0), (0.25, seconds)):
            api.ok("POST", f"/studies/{name}/trials", {"params": {"x": x, "n": 4}, "metrics": {"seconds": value}})

    tuned("s1", "small", 1.5)
    tuned("s2", "small", 1.0)
    tuned("s3", "large", 1.5)
    summarise_all()
    # No agent offers it; that it was tuned is known all the same.
    (listed,) = api.ok("GET", "/components")["components"]
    assert (listed["versions"], listed["studies"]) == ([], 3)
    best = api.ok("GET", "/components/gcc-flags")["best"]
    assert [(one["application"], one["study"], one["objective"]["gain"]) for one in best] == [
        ("large", "s3", 0.25),
        ("small", "s2", 0.5),
    ]
    assert best[1]["configuration"] == {"x": 0.25, "n": 4}


def test_an_uncertain_gain_does_not_displace_a_proven_one(api: Api) -> None:
    def tuned(name: str, seconds: float, *, noisy: bool) -> None:
        spec = {**SPEC, "noisy": noisy, "execution": {"component": "gcc-flags", "application": "small"}}
        api.ok("POST", "/studies", {"name": name, "spec": spec})
        for x, value in ((0.5, 2.0), (0.25, seconds)):
            api.ok("POST", f"/studies/{name}/trials", {"params": {"x": x, "n": 4}, "metrics": {"seconds": value}})

    tuned("exact", 1.8, noisy=False)
    tuned("lucky", 0.2, noisy=True)
    summarise_all()
    (best,) = api.ok("GET", "/components/gcc-flags")["best"]
    assert (best["study"], best["objective"]["level"]) == ("exact", "proven")


def test_a_study_stays_within_the_ranges_of_its_component(api: Api) -> None:
    """At its creation, in a plan of it, and where its ranges are changed. Of several versions any may take it."""
    x, n = SPEC["space"]["parameters"]

    def spec(high: float, most: int, **changes: object) -> dict[str, Any]:
        execution = {"component": "gcc-flags", "application": "small", **changes}
        return {**SPEC, "space": {"parameters": [{**x, "max": high}, {**n, "max": most}]}, "execution": execution}

    # No agent has offered the component, or none has reported its space, so nothing is known.
    api.ok("POST", "/studies", {"name": "early", "spec": spec(9.0, 99)})
    register("silent", components=[{**COMPONENT, "name": "other", "space": []}])
    api.ok("POST", "/studies", {"name": "untold", "spec": spec(9.0, 99, component="other")})
    register("a1", components=[COMPONENT])
    for path, more in (("/studies", {"name": "s"}), ("/plans", {}), ("/dry-runs", {})):
        refused = api.refused(400, "outside_component", "POST", path, {**more, "spec": spec(0.5, 17)})
        assert refused["data"]["field"] == "space[1].max"
        assert refused["data"]["value"] == 17
        assert refused["data"]["allowed"] == "integers from 1 to 16, the range of the component's parameter 'n'"
    api.refused(404, "study_not_found", "GET", "/studies/s")
    api.ok("POST", "/studies", {"name": "s", "spec": spec(0.5, 16)})
    # a study without agents has no component
    api.ok("POST", "/studies", {"name": "own", "spec": {**spec(0.5, 17), "execution": None}})
    wide, narrow = {"n": {"max": 17}}, {"n": {"max": 8}}
    for preview in (True, False):
        body = {"ranges": wide, "validate_only": preview}
        refused = api.refused(400, "outside_component", "PATCH", "/studies/s/space", body)
        assert refused["data"]["field"] == "ranges.n.max"
    api.ok("PATCH", "/studies/s/space", {"ranges": narrow})
    # one that was there before may be changed as far as the change itself goes, and loaded as it is
    api.ok("PATCH", "/studies/early/space", {"ranges": narrow})
    loaded = {"name": "early", "spec": spec(9.0, 99), "load_if_exists": True}
    assert api.ok("POST", "/studies", loaded)["name"] == "early"
    # another version takes more
    register("a2", components=[{**COMPONENT, "digest": "d2", "space": [x, {**n, "max": 32}]}])
    api.ok("PATCH", "/studies/s/space", {"ranges": wide})
    api.refused(400, "outside_component", "POST", "/studies", {"name": "t", "spec": spec(0.5, 17, digest="d1")})
    api.ok("POST", "/studies", {"name": "t", "spec": spec(0.5, 17, digest="d2")})


TEXT = """\
name: sorter
parameters:
  run: {type: int, min: 4, max: 512, default: 32, env: RUN}
applications: {main: {command: [sort, "{run}"]}}
"""


def test_a_text_is_checked_as_it_is_written(api: Api) -> None:
    good = api.ok("POST", "/component-checks", {"text": TEXT})
    assert (good["name"], good["parameters"], good["applications"]) == ("sorter", ["run"], ["main"])
    assert (good["problems"], good["unseen"], good["metrics"]) == ([], [], ["seconds"])
    assert "build" in good["words"][""]
    assert good["words"]["parameters.*.type"][0] == "float"
    bad = api.ok("POST", "/component-checks", {"text": TEXT.replace("max: 512", "max: 2")})
    (problem,) = bad["problems"]
    assert problem == {
        "line": 3,
        "column": 25,
        "length": 1,
        "field": "parameters.run.min",
        "message": "4 is not below max, 2",
    }
    api.refused(400, "invalid_argument", "POST", "/component-checks", {"text": "#" * 70_000})
    assert api.ok("GET", "/components") == {"components": []}


def test_versions_are_kept_until_they_are_deleted(api: Api) -> None:
    first = api.ok("POST", "/components", {"text": TEXT})
    assert (first["name"], first["number"], first["text"]) == ("sorter", 1, TEXT)
    assert first["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    # Sent twice it is there once.
    assert api.ok("POST", "/components", {"text": TEXT}) == first
    second = TEXT.replace("32", "64")
    fault = api.refused(409, "component_changed", "POST", "/components", {"text": second})
    assert fault["data"]["number"] == 1
    assert api.ok("POST", "/components", {"text": second, "after": 1})["number"] == 2
    fault = api.refused(400, "invalid_component", "POST", "/components", {"text": TEXT + "foo: 1\n", "after": 2})
    assert [(one["line"], one["field"]) for one in fault["data"]["problems"]] == [(5, "foo")]
    # It is offered once an agent says that it has this very file, and waits before.
    register("a1", components=[{**COMPONENT, "name": "sorter", "file_digest": first["sha256"]}])
    (listed,) = api.ok("GET", "/components")["components"]
    offered = {one["number"]: [agent["name"] for agent in one["agents"]] for one in listed["files"]}
    assert offered == {2: [], 1: ["a1"]}
    assert api.ok("GET", "/components/sorter/files/1")["text"] == TEXT
    api.refused(404, "component_file_not_found", "GET", "/components/sorter/files/3")
    api.ok("DELETE", "/components/sorter/files")
    assert api.ok("GET", "/components/sorter")["files"] == []
    api.refused(404, "component_file_not_found", "DELETE", "/components/sorter/files")
    trail = api.ok("GET", "/audit?action=component.")["entries"]
    assert [(one["action"], one["target"]) for one in trail] == [
        ("component.delete", "component/sorter"),
        ("component.write", "component/sorter"),
        ("component.write", "component/sorter"),
    ]


def test_a_viewer_writes_no_component(api: Api) -> None:
    made = api.ok("POST", "/tokens", {"name": "t", "scopes": ["read"], "study": None, "days": 1})
    reader = Api(made["secret"])
    assert reader.ok("POST", "/component-checks", {"text": TEXT})["problems"] == []
    reader.refused(403, "not_permitted", "POST", "/components", {"text": TEXT})


def test_patterns_that_take_long_to_compile_are_refused(api: Api) -> None:
    wide = "[a-\U0010fffe]"

    def check(patterns: list[str]) -> list[str]:
        metrics = "".join(
            f"  m{number}: {{type: regex, pattern: '(?i)({pattern})'}}\n" for number, pattern in enumerate(patterns)
        )
        found = api.ok("POST", "/component-checks", {"text": f"{TEXT}metrics:\n{metrics}"})
        return [f"{problem['field']}: {problem['message']}" for problem in found["problems"]]

    assert check([wide]) == []
    started = time.thread_time()
    assert check([wide * 2000]) == ["metrics.m0.pattern: has 10006 characters; at most 500 are allowed"]
    assert len(check([wide * 90] * 50)) == 46
    assert time.thread_time() - started < 10
