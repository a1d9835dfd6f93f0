"""Tests of what the tuner says about its trials."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from tests.agent.workloads.apache_gcc.httpd import WORKLOAD
from tests.agent.workloads.shared import module_of

analysis, tuner = module_of(WORKLOAD, "analysis"), module_of(WORKLOAD, "tune")
figures = module_of(WORKLOAD, "figures")

SMALL, FAST = analysis.Criterion("bytes"), analysis.Criterion("rate", maximize=True)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=12))
def test_pareto_set(values: list[tuple[int, int]]) -> None:
    points = {str(at): {"bytes": one, "rate": other} for at, (one, other) in enumerate(values)}
    front = {tuple(points[name].values()) for name in analysis.pareto(points, [SMALL, FAST])}
    for one, other in values:
        beaten = any(a <= one and b >= other and (a, b) != (one, other) for a, b in values)
        assert ((one, other) in front) is not beaten


def test_medians_are_of_a_configuration() -> None:
    trials = [({"a": 1, "b": 2}, {"x": 1.0}), ({"b": 2, "a": 1}, {"x": 5.0}), ({"a": 2, "b": 2}, {"x": 7.0})]
    assert list(analysis.medians(trials).values()) == [{"x": 3.0}, {"x": 7.0}]


def test_gains() -> None:
    steady = analysis.gain_of([(80.0, 100.0)] * 6, SMALL)
    assert (steady.estimate, steady.low, steady.high) == pytest.approx((0.2, 0.2, 0.2))
    assert steady.proven
    assert analysis.gain_of([(120.0, 100.0)] * 6, FAST).estimate == pytest.approx(0.2)
    noisy = analysis.gain_of([(value, 100.0) for value in (70.0, 80.0, 90.0, 95.0, 85.0, 101.0)], SMALL)
    assert (noisy.low, noisy.high) == pytest.approx((-0.01, 0.3))
    assert not noisy.proven
    few = analysis.gain_of([(80.0, 100.0)] * 5, SMALL)
    assert (few.low, few.high) == (None, None)
    assert not few.proven


def test_rounds_in_which_a_trial_failed_are_left_out() -> None:
    """The values of the other rounds stay paired."""
    own = [{"rate": value} for value in (1.0, 2.0, 3.0)]
    other = [{"rate": 10.0}, None, {"rate": 30.0}]
    assert tuner.pairs(own, other, FAST) == [(1.0, 10.0), (3.0, 30.0)]
    assert tuner.middle(other) == {"rate": 20.0}


def synthetic(count: int, effect: Callable[[dict[str, object]], float], noise: float) -> list[tuple[object, float]]:
    """Return random configurations of twenty flags at two levels, with a value for each."""
    import numpy as np

    chance = np.random.default_rng(7)
    points: list[tuple[object, float]] = []
    for _ in range(count):
        params: dict[str, object] = {f"f{at}": str(chance.choice(["level", "on", "off"])) for at in range(20)}
        params["opt-level"] = str(chance.choice(["O2", "Os"]))
        value = 100.0 * (0.5 if params["opt-level"] == "Os" else 1.0) * effect(params)
        points.append((params, value * float(np.exp(chance.normal(0, noise)))))
    return points


DEFAULTS = {"opt-level": "O2", **{f"f{at}": "level" for at in range(20)}}


def test_effects_that_are_there() -> None:
    def effect(params: dict[str, object]) -> float:
        return (1.3 if params["f3"] == "on" else 1.0) * (0.9 if params["f7"] == "off" else 1.0)

    found, looked_at = analysis.effects(synthetic(80, effect, 0.02), "opt-level", DEFAULTS)
    shown = {(one.parameter, one.value): one for one in found if one.shown}
    assert set(shown) == {("f3", "on"), ("f7", "off")}
    assert looked_at == 40
    for (_, _), one, change in zip(shown, shown.values(), (0.3, -0.1), strict=True):
        assert one.low < change < one.high
        assert one.high - one.low < 0.1
    # the first setting that is not shown is in the list, too
    assert [one.shown for one in found] == [True, True, False]


def test_effects_of_chance_are_not_shown() -> None:
    found, _ = analysis.effects(synthetic(40, lambda _: 1.0, 0.05), "opt-level", DEFAULTS)
    assert [one.shown for one in found] == [False]


def test_effects_in_too_few_configurations() -> None:
    assert analysis.effects(synthetic(3, lambda _: 1.0, 0.05), "opt-level", DEFAULTS) == ([], 0)
    constant = [(params, 5.0) for params, _ in synthetic(40, lambda _: 1.0, 0.0)]
    assert analysis.effects(constant, "opt-level", DEFAULTS)[0] == []


LEVEL_ONLY = {"opt-level": "O2", "gcse": "level"}
SPACE = [
    trimtab.Categorical("opt-level", ["O2", "Os"], default="O2"),
    trimtab.Categorical("gcse", ["level", "gcse", "no-gcse"], default="level"),
]


def test_each_algorithm_has_a_candidate_that_is_its_best_on_average() -> None:
    by_algorithm = {
        "auto": [
            (LEVEL_ONLY, {"bytes": 10.0, "rate": 10.0}),
            ({"opt-level": "O2", "gcse": "gcse"}, {"bytes": 5.0, "rate": 9.0}),
        ],
        "nsga2": [
            (LEVEL_ONLY, {"bytes": 10.0, "rate": 10.0}),
            ({"opt-level": "Os", "gcse": "gcse"}, {"bytes": 8.0, "rate": 11.0}),
            ({"opt-level": "Os", "gcse": "no-gcse"}, {"bytes": 9.5, "rate": 12.0}),
        ],
    }
    found = tuner.choose(by_algorithm, [SMALL, FAST], SPACE)
    assert [(one.title, one.params["gcse"]) for one in found] == [
        ("bytes, all on average (auto)", "gcse"),
        ("rate", "no-gcse"),
        ("all on average (nsga2)", "gcse"),
    ]


def test_all_pages_have_their_criteria() -> None:
    rate, size = tuner.Criterion("requests_per_second", maximize=True), tuner.Criterion("binary_bytes")
    assert tuner.views_of("cgi-2k", [rate, size]) == {"cgi-2k": [rate, size]}
    views = tuner.views_of("all", [rate, size])
    assert list(views) == ["static-2k", "static-32k", "cgi-2k", "cgi-32k"]
    assert views["cgi-2k"] == [tuner.Criterion("cgi_2k_requests_per_second", maximize=True)]


def test_throughput_and_time_that_do_not_agree_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"requests_per_second": 2000.0, "ms_per_request": 4.0}
    tuner.show_consistency([({}, values), ({}, values), ({}, {**values, "ms_per_request": 2.0}), ({}, {"bytes": 1.0})])
    assert "is 1.000 (0.500 to 1.000) in 3 trials" in capsys.readouterr().out


def test_a_picture_is_the_same_each_time(tmp_path: Path, programs_start: None) -> None:
    points = {"a": {"bytes": 1.0, "rate": 1.0}, "b": {"bytes": 2.0, "rate": 2.0}, "c": {"bytes": 3.0, "rate": 1.0}}
    by_algorithm = {"auto": points, "nsga2": {"b": points["b"], "lost": {"bytes": 1.0}}}
    first = figures.draw(tmp_path / "new", "cgi-2k", [SMALL, FAST], by_algorithm, {"a": "-O2", "z": "-O3"})
    text = first.read_text()
    assert first == tmp_path / "new" / "cgi-2k.svg"
    for words in (">-O2<", ">bytes<", ">rate<", ">auto, Pareto set<", ">nsga2<", ">cgi-2k<"):
        assert words in text
    assert ">-O3<" not in text
    assert figures.draw(tmp_path, "cgi-2k", [SMALL, FAST], by_algorithm, {"a": "-O2"}).read_text() == text
