"""The key `live` of a spec: its defaults, its forms, and what it refuses."""

import json
from typing import Any

import pytest

from service.core.errors import InvalidInput
from service.planning import study_file
from service.rpc import converters
from service.studies.models import Study
from service.studies.specs import parse
from service.tenancy.principal import Principal
from trimtab._internal.messages.spec import from_spec as sdk_from_spec

SPACE = [{"name": "size", "type": "int", "min": 1, "max": 64, "default": 4}]
FILE = """component: live
objectives: [{minimize: latency}]
parameters: {size: {type: int, min: 1, max: 64, default: 4}}
"""
FULL = """
live:
  warm_up: 5s
  block: 1m
  pairs: {least: 8}
  design: crossover
  step: 0.2
  min_gain: 0.05
  approve: {first: 3, people: 2}
  window: {days: mon-fri, hours: "9:00-17:00", zone: Europe/Paris}
  restart_window: {days: "sat,sun", hours: "22:00-04:00"}
  budget: {slow: {metric: slow, of: requests, most: 0.01, per: week, rate: 200}}
  rollout: [1, all]
  watch: 2d
  freeze: 0.1
  guards: {latency: {metric: p95_ms, above_control: 1.3, for: 5s}}
"""


def spec(live: object = None, **others: Any) -> dict[str, Any]:
    data = {
        "space": {"parameters": SPACE},
        "objectives": [{"metric": "latency", "goal": "minimize"}],
        "execution": {"component": "live"},
    }
    return {**data, "live": {} if live is None else live, **others}


def read(text: str) -> study_file.StudyFile:
    return study_file.read(Principal.system(1), text, offered_space=lambda *_: None)


def test_a_live_study_needs_no_key_of_its_own() -> None:
    found = parse(spec())
    assert found.live is not None
    assert found.final_check is None
    assert found.resampling is not None
    assert found.resampling.name == "none"
    live = found.live
    assert (live.warm_up, live.block, live.pairs.least, live.pairs.most) == (None, None, 6, 24)
    assert (live.approve.trials, live.approve.first, live.approve.people) == ("first", 10, 1)
    assert (live.rollout, live.watch, live.freeze, live.step) == ((1, 3, "all"), 86400.0, 0.02, 0.15)
    assert parse({key: value for key, value in spec().items() if key != "live"}).live is None


def test_a_file_message_and_export_say_the_same() -> None:
    found = parse(read(FILE + FULL).spec)
    assert found.live is not None
    assert found.live.to_json() == {
        "record": None,
        "warm_up": 5.0,
        "block": 60.0,
        "pairs": {"least": 8, "most": 24},
        "design": "crossover",
        "step": 0.2,
        "min_gain": 0.05,
        "approve": {"first": 3, "people": 2},
        "window": {"days": "mon-fri", "hours": "09:00-17:00", "zone": "Europe/Paris"},
        "restart_window": {"days": "sat,sun", "hours": "22:00-04:00", "zone": "UTC"},
        "budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.01, "per": "week", "rate": 200.0}},
        "rollout": [1, "all"],
        "watch": 172800.0,
        "freeze": 0.1,
        "guards": {"latency": {"metric": "p95_ms", "above_control": 1.3, "for": 5.0}},
    }
    message = converters.spec_message(found)
    assert parse(converters.spec_json(message)).to_json() == found.to_json()
    for brief in (True, False):
        study = Study(name="s", spec=found.stored(), component="live", parallelism=1)
        study.pk, study.created_at = -1, None  # type: ignore[assignment]
        content = json.dumps(study_file.content_of(study, brief=brief))
        assert parse(read(content).spec).to_json() == found.to_json()


@pytest.mark.parametrize("text", ["live: {}\n", "live: {approve: each}\n", "live: {approve: none, rollout: [2]}\n"])
def test_a_file_without_most_keys_comes_back(text: str) -> None:
    found = parse(read(FILE + text).spec)
    assert found.live is not None
    study = Study(name="s", spec=found.stored(), component="live", parallelism=1)
    study.pk, study.created_at = -2, text
    assert f"\n{text}" in study_file.text_of(study)


@pytest.mark.parametrize(
    ("live", "field", "allowed"),
    [
        ({"block": "5 parsecs"}, "live.block", "a time from 0.1 s to 24 hours"),
        ({"block": 0}, "live.block", "a time from 0.1 s"),
        ({"pairs": {"least": 1}}, "live.pairs.least", "a whole number from 2 to 1,000"),
        ({"pairs": {"least": 9, "most": 8}}, "live.pairs.most", "at least 9"),
        ({"design": "abba"}, "live.design", "auto, switchback, crossover, canary"),
        ({"step": 0}, "live.step", "a share of a range"),
        ({"approve": "sometimes"}, "live.approve", "first, each, restart, none"),
        ({"approve": {"first": 0}}, "live.approve.first", "a whole number from 1"),
        ({"approve": {"first": 2, "trials": "each"}}, "live.approve.first", "no number together"),
        ({"approve": {"people": 3}}, "live.approve.people", "a whole number from 1 to 2"),
        ({"window": {"days": "mon-fry"}}, "live.window.days", "days such as mon-fri"),
        ({"window": {"hours": "9-17"}}, "live.window.hours", "hours such as"),
        ({"window": {"hours": "25:00-26:00"}}, "live.window.hours", "hours such as"),
        ({"restart_window": {"zone": "Mars/Olympus"}}, "live.restart_window.zone", "a time zone such as UTC"),
        ({"restart_window": {"zone": "../etc"}}, "live.restart_window.zone", "a time zone such as UTC"),
        ({"budget": {"slow": {"metric": "slow", "of": "requests"}}}, "live.budget.slow.most", "a share above 0"),
        (
            {"budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.1, "per": "year"}}},
            "live.budget.slow.per",
            "hour, day, week",
        ),
        ({"rollout": [3, 1]}, "live.rollout[1]", "a list of numbers"),
        ({"rollout": ["all", 3]}, "live.rollout[0]", "a list of numbers"),
        ({"freeze": 2}, "live.freeze", "a share from 0 to 1"),
        ({"guards": {"g": {"metric": "m"}}}, "live.guards.g", "one of above, below, above_control"),
        ({"guards": {"g": {"metric": "m", "above": 1, "below": 1}}}, "live.guards.g", "one of above, below"),
        ({"guards": {"g": {"metric": "m", "above_control": 1}}}, "live.guards.g.above_control", "a factor above 1"),
        ({"guards": {"g": {"metric": "m", "above": 1, "for": -1}}}, "live.guards.g.for", "a time from 0 s"),
        ({"blocks": 1}, "live.blocks", "the keys approve"),
        ("yes", "live", "an object"),
    ],
)
def test_what_is_not_allowed(live: object, field: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(spec(live))
    assert caught.value.data["field"] == field
    assert allowed in str(caught.value.data["allowed"])


@pytest.mark.parametrize(
    ("others", "field"),
    [
        ({"execution": None}, "live"),
        ({"execution": {"component": "live", "parallelism": 2}}, "execution.parallelism"),
        ({"final_check": {}}, None),
        ({"final_check": {"max_trials": 8}}, "final_check"),
        ({"pruning": [{"name": "default"}]}, "pruning"),
        ({"resampling": {"name": "static", "options": {"n": 2}}}, "resampling.name"),
        ({"start_from": ["earlier"]}, "start_from"),
        ({"stability": {}}, "stability"),
        (
            {"objectives": [{"metric": "a", "goal": "minimize"}, {"metric": "b", "goal": "minimize"}]},
            "objectives",
        ),
        ({"space": {"parameters": [{"name": "x", "type": "int", "min": 1, "max": 2}]}}, "space"),
    ],
)
def test_what_a_live_study_cannot_have(others: dict[str, Any], field: str | None) -> None:
    if field is None:
        assert parse(spec(**others)).final_check is None
        return
    with pytest.raises(InvalidInput) as caught:
        parse(spec(**others))
    assert caught.value.data["field"] == field


def test_a_fault_of_a_file_names_its_line() -> None:
    found = read(FILE + "live:\n  block: 60s\n  design: abba\n")
    with pytest.raises(InvalidInput, match=r"^live\.design: 'abba'") as caught, found.places():
        parse(found.spec)
    assert caught.value.data["line"] == 6


def test_the_sdk_reads_it() -> None:
    live = sdk_from_spec(converters.spec_message(parse(spec({"block": "1m"})))).live  # type: ignore[arg-type]
    assert live is not None
    assert live["block"] == 60
