"""Similarities of single fields: published examples, limits, and bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import JaroWinkler, Levenshtein

from service.matching.linkage.names import Names
from service.matching.linkage.option_sets import OptionSets
from service.matching.linkage.paths import Paths
from tests.factories.linkage import jaro_winkler, levenshtein

words = st.text("abcd19é", max_size=12)


@given(words, words)
def test_the_library_agrees_with_the_definitions(a: str, b: str) -> None:
    assert Levenshtein.normalized_similarity(a, b) == pytest.approx(levenshtein(a, b))
    assert JaroWinkler.similarity(a, b) == pytest.approx(jaro_winkler(a, b))


def test_jaro_winkler_has_the_published_values() -> None:
    assert jaro_winkler("martha", "marhta") == pytest.approx(0.961, abs=5e-4)
    assert jaro_winkler("dixon", "dicksonx") == pytest.approx(0.813, abs=5e-4)


@given(st.lists(words | st.text(max_size=300).filter(lambda word: len(word) > 100), min_size=1, max_size=8), words)
def test_the_bound_of_a_similarity_is_not_below_it(names: list[str], query: str) -> None:
    known = Names()
    codes = np.array([known.add(name) for name in names])
    assert (known.bounds(query)[codes] >= known.similarities(query, codes) - 1e-12).all()


def test_the_bound_tells_most_names_apart() -> None:
    known = Names()
    for name in ("angryant", "angryant2", "boldwhale", "iceriver"):
        known.add(name)
    assert known.bounds("angryant") == pytest.approx([1, 8 / 9, 1 / 9, 1 / 8])


def paths(*texts: str) -> Paths:
    found = Paths()
    for text in texts:
        found.count(np.array([found.add(tuple(text.split()))]), 1)
    return found


def test_a_rare_token_weighs_more_than_a_common_one() -> None:
    known = paths("home ann ant", "home bob bee", "home cat cow")
    similar = known.similarities(("home", "eve", "ant"), 3, np.arange(3))
    rare, common = math.log(4), math.log(4 / 3)
    square = 2 * rare**2 + common**2
    assert similar == pytest.approx([(rare**2 + common**2) / square, common**2 / square, common**2 / square])


def test_a_token_with_a_typing_error_still_counts() -> None:
    known = paths("simulation", "other")
    assert known.similarities(("simulatoin",), 2, np.arange(2)) == pytest.approx(
        [jaro_winkler("simulation", "simulatoin"), 0]
    )


def test_a_token_counts_from_a_similarity_of_nine_tenths() -> None:
    known = paths("ccbabb")
    assert known.similarities(("cbbb",), 1, np.array([0])) == pytest.approx([0.9])
    assert known.similarities(("cbba",), 1, np.array([0])) == pytest.approx([0])


def test_a_similarity_of_paths_is_at_most_1() -> None:
    known = paths("simulation", "other")
    assert known.similarities(("simulation", "simulations", "simulationx"), 2, np.array([0])) == pytest.approx([1])


def test_equal_paths_and_empty_ones_are_equal_in_any_index() -> None:
    known = paths("home ann", "home ann", "")
    codes = np.arange(2)
    assert known.similarities(("home", "ann"), 3, codes) == pytest.approx([1, 0])
    assert known.similarities((), 3, codes) == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"-a": ["1"], "-b": []}, 1.0),
        ({"-a": ["1"]}, 1 / 2),
        ({"-a": ["2"], "-b": []}, 1 / 2),
        ({"-a": ["1", "1"], "-b": []}, 3 / 4),
        ({"-a": ["1"], "-b": ["x"]}, 1 / 2),
        ({"-a": ["1"], "-b": [], "-c": ["1"], "-d": []}, 2 / 4),
        ({}, 0.0),
    ],
)
def test_options_have_the_share_of_equal_values(options: dict[str, list[str]], expected: float) -> None:
    known = OptionSets()
    code = known.add((("-a", ("1",)), ("-b", ())))
    query = tuple(sorted((key, tuple(values)) for key, values in options.items()))
    assert known.similarities(query, np.array([code])) == pytest.approx([expected])


def test_two_jobs_without_options_are_equal_in_them() -> None:
    known = OptionSets()
    assert known.similarities((), np.array([known.add(())])) == pytest.approx([1])


def test_in_a_huge_index_a_word_is_compared_with_some_tokens_and_equal_to_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.matching.linkage.paths.MOST_COMPARED", 2)
    known = paths("simulation", "other", "simulatiom", "bee")
    similar = known.similarities(("simulatiom",), 4, np.arange(4))
    assert similar == pytest.approx([jaro_winkler("simulation", "simulatiom"), 0, 1, 0])
    # It is found again among what is remembered.
    assert known.similarities(("simulatiom",), 4, np.arange(4)) == pytest.approx(similar)
    assert known.similarities(("bees",), 4, np.array([3])) == pytest.approx([0])
