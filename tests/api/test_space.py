from __future__ import annotations

from collections.abc import Callable

from tests.api.conftest import Api

Create = Callable[..., str]


def test_ranges_are_changed_while_the_search_goes_on(api: Api, study: Create) -> None:
    study()
    first = api.ok("POST", "/studies/s/suggestions", {"count": 6})["trials"]
    for trial in first[:4]:
        api.ok("POST", f"/studies/s/trials/{trial['number']}/complete", {"metrics": {"seconds": trial["params"]["x"]}})
    ranges = {"x": {"min": 0.45, "max": 0.55}, "n": {"max": 64}}
    would = api.ok("PATCH", "/studies/s/space", {"ranges": ranges, "validate_only": True})
    outside = {
        "finished": sum(not 0.45 <= trial["params"]["x"] <= 0.55 for trial in first[:4]),
        "running": sum(not 0.45 <= trial["params"]["x"] <= 0.55 for trial in first[4:]),
        "waiting": 0,
    }
    assert (would["outside"], would["study"]["space_version"]) == (outside, 1)
    assert outside["finished"] > 0
    changed = api.ok("PATCH", "/studies/s/space", {"ranges": ranges})
    assert changed["outside"] == outside
    assert changed["study"] == api.ok("GET", "/studies/s")
    assert changed["study"]["space_version"] == 2
    x, n = changed["study"]["spec"]["space"]["parameters"]
    assert (x["min"], x["max"], n["min"], n["max"], x["default"], n["default"]) == (0.45, 0.55, 1, 64, 0.5, 4)
    for trial in api.ok("POST", "/studies/s/suggestions", {"count": 6})["trials"]:
        assert 0.45 <= trial["params"]["x"] <= 0.55
    api.refused(400, "invalid_argument", "POST", "/studies/s/queue", {"params": {"x": 0.2, "n": 3}})
    analysis = api.ok("GET", "/studies/s/analysis")
    assert all(0.45 <= found["params"]["x"] <= 0.55 for found in analysis["best"])


def test_a_refused_change_of_a_range_names_its_field(api: Api, study: Create) -> None:
    study()
    for ranges, code, field in (
        ({"x": {"min": 0.6}}, "default_outside", "ranges.x.min"),
        ({"n": {"min": 1.5}}, "invalid_argument", "ranges.n.min"),
        ({"n": {"values": [1, 2]}}, "parameter_unchangeable", "ranges.n.values"),
        ({"n": None}, "parameter_unchangeable", "ranges.n"),
        ({"m": {"min": 1}}, "invalid_argument", "ranges.m"),
    ):
        refusal = api.refused(400, code, "PATCH", "/studies/s/space", {"ranges": ranges, "validate_only": True})
        assert refusal["data"]["field"] == field
        api.refused(400, code, "PATCH", "/studies/s/space", {"ranges": ranges})
    api.refused(404, "study_not_found", "PATCH", "/studies/t/space", {"ranges": {}})
    api.ok("PATCH", "/studies/s", {"state": "COMPLETED"})
    api.refused(409, "search_over", "PATCH", "/studies/s/space", {"ranges": {"n": {"max": 8}}})
    assert api.ok("GET", "/studies/s")["space_version"] == 1
