from __future__ import annotations

from typing import Any

from service.pipeline import summaries
from tests.api.conftest import SPEC, Api
from tests.api.test_agents import register

COMPONENT: dict[str, Any] = {
    "name": "gcc-flags",
    "digest": "d1",
    "applications": ["small", "large"],
    "description": "Flags.",
    "space": SPEC["space"]["parameters"],
    "metrics": ["seconds"],
}


def test_a_component_tells_its_versions_and_who_offers_them(api: Api) -> None:
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
    summaries.refresh()
    # No agent offers it; that it was tuned is known all the same.
    (listed,) = api.ok("GET", "/components")["components"]
    assert (listed["versions"], listed["studies"]) == ([], 3)
    best = api.ok("GET", "/components/gcc-flags")["best"]
    assert [(one["application"], one["study"], one["objective"]["gain"]) for one in best] == [
        ("large", "s3", 0.25),
        ("small", "s2", 0.5),
    ]
    assert best[1]["configuration"] == {"x": 0.25, "n": 4}
