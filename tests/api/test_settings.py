"""Settings ready to use: what a study recommends, as its program takes it."""

from __future__ import annotations

import json
from typing import Any

from tests.api.conftest import SPEC, Api
from tests.api.test_agents import register

RECIPE: dict[str, Any] = {
    "component": {
        "name": "server",
        "parameters": {
            "x": {"type": "float", "min": 0.0, "max": 1.0, "default": 0.5, "env": "X"},
            "n": {"type": "int", "min": 1, "max": 16, "default": 4},
        },
        "templates": [{"source": "0", "target": "server.conf"}],
        "applications": {"small": {"command": ["run", "--n={n}"]}, "large": {"command": ["run", "{work}/big"]}},
    },
    "templates": ["workers ${n}\n"],
}
OFFERED = {
    "name": "server",
    "digest": "d1",
    "applications": ["small", "large"],
    "description": "",
    "space": SPEC["space"]["parameters"],
    "metrics": ["seconds"],
}


def tuned(api: Api, name: str = "s", application: str = "small", **changes: Any) -> str:
    execution = {"component": "server", "application": application, "digest": "d1"}
    api.ok("POST", "/studies", {"name": name, "spec": {**SPEC, "noisy": False, "execution": execution, **changes}})
    for x, seconds in ((0.5, 2.0), (0.25, 1.0), (0.75, 3.0)):
        api.ok("POST", f"/studies/{name}/trials", {"params": {"x": x, "n": 4}, "metrics": {"seconds": seconds}})
    return name


def text(api: Api, form: str, more: str = "", name: str = "s") -> str:
    return str(api.ok("GET", f"/studies/{name}/settings?format={form}{more}")["text"])


def test_every_form_of_a_component(api: Api) -> None:
    register("a", components=[{**OFFERED, "recipe": json.dumps(RECIPE)}])
    tuned(api)
    assert text(api, "env") == "X=0.25\n"
    assert text(api, "set") == "--set x=0.25 --set n=4\n"
    assert text(api, "yaml") == 'x: 0.25\n"n": 4\n'
    assert json.loads(text(api, "json")) == {"x": 0.25, "n": 4}
    assert text(api, "template") == "workers 4\n"
    assert text(api, "command") == "X=0.25 run --n=4\n"
    (worst,) = [one for one in api.ok("GET", "/studies/s/trials")["trials"] if one["metrics"] == {"seconds": 3.0}]
    assert text(api, "env", f"&trial={worst['number']}") == "X=0.75\n"
    found = api.ok("GET", "/studies/s/settings?format=template")
    assert found["files"] == [{"name": "server.conf", "text": "workers 4\n"}]
    assert (found["params"], found["by_component"]) == ({"x": 0.25, "n": 4}, True)
    tuned(api, "t", "large")
    assert text(api, "command", name="t") == 'X=0.25 run "$work"/big\n'


def test_the_version_that_the_study_measured_stays_known(api: Api) -> None:
    register("a", components=[{**OFFERED, "recipe": json.dumps(RECIPE)}])
    tuned(api)
    other = json.loads(json.dumps(RECIPE).replace('"X"', '"NEWER"'))
    register("a", components=[{**OFFERED, "digest": "d2", "recipe": json.dumps(other)}])
    assert text(api, "env") == "X=0.25\n"
    # The rows of agents, which each heartbeat reads, stay short.
    assert "recipe" not in json.dumps(api.ok("GET", "/agents"))


def test_a_study_that_names_no_version_has_that_of_its_time(api: Api) -> None:
    register("a", components=[{**OFFERED, "recipe": json.dumps(RECIPE)}])
    execution = {"component": "server", "application": "small"}
    tuned(api, execution=execution)
    other = json.loads(json.dumps(RECIPE).replace('"n"', '"other"').replace("{n}", "{other}"))
    register("a", components=[{**OFFERED, "digest": "d2", "recipe": json.dumps(other)}])
    assert text(api, "command") == "X=0.25 run --n=4\n"


def test_a_study_without_a_recipe_names_its_parameters(api: Api) -> None:
    tuned(api)
    found = api.ok("GET", "/studies/s/settings?format=env")
    assert found["text"] == "x=0.25\nn=4\n"
    assert found["by_component"] is False
    assert "does not know how values reach" in found["notes"][0]
    refused = api.refused(400, "no_such_form", "GET", "/studies/s/settings?format=template")
    assert "Use env, set, yaml, json or command." in refused["detail"]


def test_a_recipe_that_nobody_can_read_is_none(api: Api) -> None:
    register("a", components=[{**OFFERED, "recipe": '{"component": {"name": 3}, "templates": 1}'}])
    tuned(api)
    assert text(api, "env") == "x=0.25\nn=4\n"


def test_what_has_no_settings_is_refused(api: Api) -> None:
    api.ok("POST", "/studies", {"name": "new", "spec": SPEC})
    api.refused(404, "no_completed_trial", "GET", "/studies/new/settings?format=env")
    api.refused(404, "trial_not_found", "GET", "/studies/new/settings?format=env&trial=7")
    api.refused(404, "study_not_found", "GET", "/studies/never/settings?format=env")
    for query in ("", "?format=toml", "?format=env&context=load"):
        api.refused(400, "invalid_argument", "GET", f"/studies/new/settings{query}")
    two = [{"metric": "seconds", "goal": "minimize"}, {"metric": "watts", "goal": "minimize"}]
    api.ok("POST", "/studies", {"name": "two", "spec": {**SPEC, "objectives": two}})
    api.refused(409, "several_objectives", "GET", "/studies/two/settings?format=env")


def test_settings_of_a_context(api: Api) -> None:
    parameters = [*SPEC["space"]["parameters"], {"name": "load", "type": "categorical", "values": ["low", "high"]}]
    space = {"parameters": [{**one, "default": "low"} if one["name"] == "load" else one for one in parameters]}
    api.ok("POST", "/studies", {"name": "c", "spec": {**SPEC, "space": space, "context": ["load"]}})
    params = {"x": 0.25, "n": 4, "load": "low"}
    api.ok("POST", "/studies/c/trials", {"params": params, "metrics": {"seconds": 1.0}})
    api.refused(409, "several_contexts", "GET", "/studies/c/settings?format=env")
    api.refused(400, "invalid_argument", "GET", "/studies/c/settings?format=env&context=load=none")
    assert text(api, "yaml", "&context=load=low", "c") == 'x: 0.5\n"n": 4\n'
    assert text(api, "yaml", "&trial=1", "c") == 'x: 0.25\n"n": 4\n'
