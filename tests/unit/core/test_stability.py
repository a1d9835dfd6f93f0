"""The settings of `stability:`: what they accept, what they refuse, and their round trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.core.stability import Stability


def test_nothing_given_is_the_usual_settings() -> None:
    assert Stability.parse("stability", {}) == Stability((1, 3, 10), None, 1.0, None, 0.3, "auto")


def test_the_keys_of_a_study_file() -> None:
    given = {"nodes": [2, 4.0, 9], "times": "24h", "value": {"quantile": 0.9}, "unstable": 0.5, "adjust": "none"}
    assert Stability.parse("stability", given) == Stability((2, 4, 9), 86400.0, None, 0.9, 0.5, "none")


@pytest.mark.parametrize(
    ("data", "field", "allowed"),
    [
        (3, "stability", "an object with nodes, times, value, unstable, adjust"),
        ({"node": [1]}, "stability.node", "the keys nodes, times, value, unstable, adjust"),
        ({"nodes": 10}, "stability.nodes", "a list of 1 to 5 integers in ascending order, each from 1 to 1000"),
        ({"nodes": []}, "stability.nodes", "a list of 1 to 5 integers in ascending order, each from 1 to 1000"),
        ({"nodes": [1, 3, 3]}, "stability.nodes[2]", "an integer from 4 to 1000"),
        ({"nodes": [0, 3]}, "stability.nodes[0]", "an integer from 1 to 1000"),
        ({"nodes": [1, 2.5]}, "stability.nodes[1]", "an integer from 2 to 1000"),
        ({"nodes": [True]}, "stability.nodes[0]", "an integer from 1 to 1000"),
        ({"nodes": [1, "10"]}, "stability.nodes[1]", "an integer from 2 to 1000"),
        ({"times": "1 week"}, "stability.times", "a time from 1s to 31d, such as 24h or a number of seconds"),
        ({"times": "40d"}, "stability.times", "a time from 1s to 31d, such as 24h or a number of seconds"),
        ({"times": 0.5}, "stability.times", "a time from 1s to 31d, such as 24h or a number of seconds"),
        ({"value": "mean"}, "stability.value", "either {mean_plus: 1.0} or {quantile: 0.9}"),
        ({"value": {}}, "stability.value", "either {mean_plus: 1.0} or {quantile: 0.9}"),
        (
            {"value": {"mean_plus": 1, "quantile": 0.9}},
            "stability.value",
            "either {mean_plus: 1.0} or {quantile: 0.9}",
        ),
        ({"value": {"median": 1}}, "stability.value.median", "either {mean_plus: 1.0} or {quantile: 0.9}"),
        ({"value": {"mean_plus": -1}}, "stability.value.mean_plus", "a number from 0 to 10"),
        ({"value": {"quantile": 1}}, "stability.value.quantile", "a number from 0.5 to 0.99"),
        (
            {"nodes": [1, 4], "value": {"quantile": 0.9}},
            "stability.value.quantile",
            "mean_plus, or nodes that end with 5 or more",
        ),
        ({"unstable": 0}, "stability.unstable", "a number from 0.01 to 10"),
        ({"unstable": float("nan")}, "stability.unstable", "a number from 0.01 to 10"),
        ({"adjust": "always"}, "stability.adjust", "auto or none"),
    ],
)
def test_an_error_names_the_field_and_what_is_allowed(data: object, field: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Stability.parse("stability", data)
    assert (caught.value.data["field"], caught.value.data["allowed"]) == (field, allowed)


@given(
    st.builds(
        Stability,
        st.sampled_from([(1,), (1, 3, 10), (5, 7)]),
        st.none() | st.floats(1, 86400),
        st.floats(0, 10),
        st.none(),
        st.floats(0.01, 10),
        st.sampled_from(["auto", "none"]),
    )
)
def test_the_json_makes_equal_settings(settings: Stability) -> None:
    assert Stability.parse("stability", settings.to_json()) == settings


def test_a_null_is_the_default() -> None:
    given = dict.fromkeys(("nodes", "times", "value", "unstable", "adjust"))
    assert Stability.parse("stability", given) == Stability()
