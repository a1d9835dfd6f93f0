import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.encoding import Column, Encoding
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)
from service.testing.random_spaces import configurations_of, spaces


def codes(parameter: Parameter, *values: Scalar) -> list[float]:
    encoding = Encoding(Space.build([parameter]))
    return [float(code) for code in encoding.encode([{parameter.name: value} for value in values])[:, 0]]


def decoded(parameter: Parameter, *numbers: float) -> list[Scalar]:
    encoding = Encoding(Space.build([parameter]))
    return [one[parameter.name] for one in encoding.decode(np.array(numbers)[:, None])]


@pytest.mark.parametrize(
    ("parameter", "values", "expected"),
    [
        (FloatParameter("x", -1, 3), (-1.0, 0.0, 3.0), [0.0, 0.25, 1.0]),
        (FloatParameter("x", 1e-3, 10, log=True), (1e-3, 0.1, 10.0), [0.0, 0.5, 1.0]),
        (FloatParameter("x", 0, 1, step=0.25), (0.0, 0.25, 1.0), [0.0, 0.25, 1.0]),
        (FloatParameter("x", 0, 1, step=0.4), (0.0, 0.4, 0.8), [0.0, 0.5, 1.0]),
        (FloatParameter("x", 1, 100, factor=10), (1.0, 10.0, 100.0), [0.0, 0.5, 1.0]),
        (IntParameter("x", 1, 5), (1, 2, 5), [0.0, 0.25, 1.0]),
        (IntParameter("x", 1, 256, log=True), (1, 16, 256), [0.0, 0.5, 1.0]),
        (OrdinalParameter("x", (4, "a", True)), (4, "a", True), [0.0, 0.5, 1.0]),
        (CategoricalParameter("x", ("a", "b", "c")), ("a", "b", "c"), [0.0, 0.5, 1.0]),
        (BoolParameter("x"), (False, True), [0.0, 1.0]),
        (FloatParameter("x", 3, 3), (3.0,), [0.0]),
        (CategoricalParameter("x", ("a",)), ("a",), [0.0]),
    ],
)
def test_codes(parameter: Parameter, values: tuple[Scalar, ...], expected: list[float]) -> None:
    assert codes(parameter, *values) == pytest.approx(expected)


def test_decode_snaps_to_the_nearest_level() -> None:
    assert decoded(FloatParameter("x", 0, 1, step=0.1), 0.34, 0.36, -3.0, 7.0) == [0.3, 0.4, 0.0, 1.0]
    assert decoded(IntParameter("x", 1, 100, log=True), 0.0, 0.5, 1.0) == [1, 10, 100]
    assert decoded(BoolParameter("x"), 0.49, 0.51) == [False, True]
    assert repr(decoded(FloatParameter("x", -1, 0), 1.0)) == "[0.0]"


def test_columns_and_inactive_parameters() -> None:
    space = Space.build(
        [
            BoolParameter("huge", default=True),
            IntParameter("n", 0, 10, default=4, condition=Condition("huge", (True,))),
            FloatParameter("x", 0, 1),
        ]
    )
    encoding = Encoding(space)
    assert encoding.columns == (
        Column("huge", "boolean", 2),
        Column("n", "numeric", 11),
        Column("x", "numeric", None),
        Column("n", "activity", 2),
    )
    assert encoding.dimension == 4
    cube = encoding.encode([{"huge": True, "n": 10, "x": 0.5}, {"huge": False, "x": 0.25}])
    assert cube.tolist() == [[1.0, 1.0, 0.5, 1.0], [0.0, 0.4, 0.25, 0.0]]
    # What is active follows from the parents, whatever the activity column holds.
    assert encoding.decode([0.0, 1.0, 0.5, 1.0]) == [{"huge": False, "x": 0.5}]
    assert encoding.decode([[1.0, 1.0, 0.5]]) == [{"huge": True, "n": 10, "x": 0.5}]


def test_spread_gives_each_level_an_equal_share() -> None:
    numbers = (np.arange(1000) + 0.5)[:, None] / 1000
    for parameter in (
        IntParameter("x", 1, 4),
        OrdinalParameter("x", ("a", "b", "c", "d")),
        FloatParameter("x", 0, 3, step=1),
    ):
        drawn = [one["x"] for one in Encoding(Space.build([parameter])).spread(numbers)]
        assert [drawn.count(value) for value in parameter.checked("x").grid() or ()] == [250] * 4


def test_spread_on_a_log_scale_shares_by_the_span_of_each_step() -> None:
    numbers = (np.arange(1000) + 0.5)[:, None] / 1000
    drawn = [one["x"] for one in Encoding(Space.build([IntParameter("x", 1, 15, log=True)])).spread(numbers)]
    assert drawn.count(1) == drawn.count(2) + drawn.count(3) == sum(drawn.count(value) for value in range(8, 16)) == 250


def test_large_integers_are_exact() -> None:
    parameter = IntParameter("n", 2**62, 2**62 + 2**45)
    values = [2**62, 2**62 + 1, 2**62 + 2**44 + 1, 2**62 + 2**45 - 1]
    assert decoded(parameter, *codes(parameter, *values)) == values
    # Beyond that not every level has a float of its own; the result is a level all the same.
    whole = IntParameter("n", -(2**63), 2**63 - 1)
    assert decoded(whole, 0.0, 1.0) == [-(2**63), 2**63 - 1]
    assert Encoding(Space.build([whole])).spread([0.0]) == [{"n": -(2**63)}]


def test_a_log_scale_too_narrow_for_its_logarithm() -> None:
    least, most = 1e9, float(np.nextafter(1e9, np.inf))
    encoding = Encoding(Space.build([FloatParameter("x", least, most, log=True)]))
    assert encoding.encode([{"x": least}, {"x": most}]).tolist() == [[0.0], [0.0]]
    assert all(least <= float(one["x"]) <= most for one in encoding.decode([[0.0], [0.5], [1.0]]))


def test_nothing_to_encode() -> None:
    encoding = Encoding(Space.build([BoolParameter("x")]))
    assert encoding.encode([]).shape == (0, 1)
    assert encoding.decode(np.empty((0, 1))) == []


@given(st.data())
def test_decode_undoes_encode(data: st.DataObject) -> None:
    space = data.draw(spaces())
    encoding = Encoding(space)
    configurations = data.draw(st.lists(configurations_of(space), min_size=1, max_size=4))
    cube = encoding.encode(configurations)
    assert cube.shape == (len(configurations), encoding.dimension)
    assert ((cube >= 0) & (cube <= 1)).all()
    for configuration, again in zip(configurations, encoding.decode(cube), strict=True):
        assert list(again) == list(configuration)
        for name, value in configuration.items():
            parameter = space[name]
            if isinstance(parameter, FloatParameter) and parameter.size() is None and isinstance(value, float):
                scale = max(abs(parameter.min), abs(parameter.max))
                assert again[name] == pytest.approx(value, rel=1e-9, abs=1e-12 * scale)
            else:
                assert repr(again[name]) == repr(value)


@given(st.data())
def test_every_point_of_the_cube_is_a_configuration(data: st.DataObject) -> None:
    space = data.draw(spaces())
    encoding = Encoding(space)
    unit = st.floats(0, 1, exclude_max=True)
    row = data.draw(st.lists(unit, min_size=encoding.dimension, max_size=encoding.dimension))
    for found in (encoding.decode([row]), encoding.spread([row[: len(space.parameters)]])):
        assert repr([space.validate(one) for one in found]) == repr(found)
