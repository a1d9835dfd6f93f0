"""Figures and HTML of studies."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

import trimtab
from trimtab import plots
from trimtab.insight import insight_from_json
from trimtab.study import Study


@pytest.fixture(autouse=True)
def no_screen() -> Iterator[None]:
    before = mpl.get_backend()
    mpl.use("Agg")
    yield
    mpl.use(before)


@pytest.fixture
def measured(client: trimtab.Client, name: str) -> Study:
    space = [
        trimtab.Float("x", 1e-3, 10, log=True, default=1.0),
        trimtab.Categorical("kind", ["a", "<b>"], default="a"),
        trimtab.Int("depth", 1, 9, when=("kind", ["<b>"])),
    ]
    study = client.create_study(name, space, [trimtab.Minimize("v", unit="s")], algorithm="random", noisy=False)
    for x, depth in ((1.0, None), (0.5, 3), (4.0, 9)):
        kind = {"kind": "a"} if depth is None else {"kind": "<b>", "depth": depth}
        study.add_trial({"x": x, **kind}, x)
    return study


def test_history_shows_values_and_the_best_one_so_far(measured: Study) -> None:
    axes = plots.history(measured)
    assert axes.collections[0].get_offsets().tolist() == [[1, 1.0], [2, 0.5], [3, 4.0]]  # type: ignore[union-attr]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == [1.0, 0.5, 0.5]
    assert axes.get_ylabel() == "v (s)"


def test_slices_leave_out_trials_without_the_parameter(measured: Study) -> None:
    row = plots.slices(measured)
    assert [axes.get_xlabel() for axes in row] == ["x", "kind", "depth"]
    assert row[0].get_xscale() == "log"
    assert row[2].collections[0].get_offsets().tolist() == [[3, 0.5], [9, 4.0]]


def test_parallel_coordinates_and_distributions(measured: Study) -> None:
    axes = plots.parallel_coordinates(measured)
    assert [len(line.get_xdata()) for line in axes.lines] == [3, 3, 3]  # type: ignore[arg-type]
    found = plots.edf([measured, measured])
    assert np.asarray(found.lines[0].get_xdata()).tolist() == [0.5, 1.0, 4.0]
    with pytest.raises(trimtab.errors.InvalidInput, match="names of parameters: x, kind, depth"):
        plots.slices(measured, ["y"])
    with pytest.raises(trimtab.errors.InvalidInput, match="a study with two objectives"):
        plots.pareto_front(measured)


def test_a_surface_is_drawn_as_the_insight_has_it(measured: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    curve = {"mean": [1.0, 2.0], "deviation": [0.1, 0.1]}
    effect = {"parameter": "x", "importance": 0.7, "deviation": 0.1, "levels": [0.1, 1.0], "average": curve}
    surface = {"first": "depth", "second": "x", "importance": 0.1, "first_levels": [1, 9], "second_levels": [0.1, 1.0]}
    objective = {"metric": "v", "configurations": 3, "explained": 0.5, "best": {"x": 0.5}}
    data = {
        "objectives": [
            {**objective, "effects": [{**effect, "slice": curve}], "surfaces": [{**surface, "mean": [[1, 2], [3, 4]]}]}
        ]
    }
    monkeypatch.setattr(Study, "insight", lambda *_: insight_from_json(3, data))
    assert measured.importance() == {"x": 0.7}
    assert [bar.get_width() for bar in plots.importance(measured).patches] == [0.7]  # type: ignore[attr-defined]
    axes = plots.contour(measured, "x", "depth")
    assert axes.collections[-1].get_offsets().tolist() == [[0.5, 3], [4.0, 9]]  # type: ignore[union-attr]
    with pytest.raises(trimtab.errors.InvalidInput, match="one of the objectives: v"):
        measured.importance("w")


def test_too_few_results_have_no_insight(measured: Study) -> None:
    assert measured.insight() is None
    assert measured.importance() == {}


def test_html_escapes_what_comes_from_elsewhere(measured: Study) -> None:
    shown = measured._repr_html_()
    assert measured.name in shown
    assert "kind = &lt;b&gt;, depth = 3" in shown
    assert "<b>" not in shown
    assert "<td>COMPLETED</td>" in measured.trials()[0]._repr_html_()
    assert measured.verdict is not None
    assert "<td>proven</td>" in measured.verdict._repr_html_()
