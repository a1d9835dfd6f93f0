"""Pairs of production jobs: their meaning, their cost, and the end of a trial."""

from __future__ import annotations

import math
import random

import pytest

from service.policies.job_pairs import End, Meaning, Run, judge, meaning

DONE = End.COMPLETED


@pytest.mark.parametrize(
    ("candidate", "incumbent", "effect", "broken", "hours"),
    [
        (Run(DONE, 120), Run(DONE, 100), math.log(1.2), False, 20),
        (Run(DONE, 80), Run(DONE, 100), math.log(0.8), False, 0),
        (Run(DONE, 0), Run(DONE, 1), math.log(0.5), False, 0),
        (Run(End.FAILED, 50), Run(DONE, 100), None, True, 50),
        (Run(End.FAILED, 50), Run(End.UNUSED), None, True, 50),
        (Run(End.FAILED, 50), Run(End.FAILED, 50), None, False, 50),
        (Run(DONE, 100), Run(End.FAILED, 5), None, False, 100),
        (Run(End.CANCELLED, 30), Run(DONE, 100), None, False, 30),
        (Run(End.LOST), Run(DONE, 100), None, False, 600),
        (Run(DONE, 100), Run(End.LOST), None, False, 100),
        (Run(End.UNUSED, 100), Run(DONE, 100), None, False, 0),
    ],
)
def test_the_meaning_of_a_pair(
    candidate: Run, incumbent: Run, effect: float | None, broken: bool, hours: float
) -> None:
    found = meaning(candidate, incumbent, nodes=2, limit=600)
    assert found.broken == broken
    assert found.cost == pytest.approx(2 * hours / 3600)
    assert found.effect == (None if effect is None else pytest.approx(effect))


@pytest.mark.parametrize("seed", range(50))
def test_no_pair_costs_more_than_its_time_limit(seed: int) -> None:
    draw = random.Random(seed)
    limit, nodes = draw.uniform(1, 1000), draw.randint(1, 64)
    runs = [Run(draw.choice(list(End)), draw.uniform(0, limit)) for _ in range(2)]
    assert 0 <= meaning(*runs, nodes=nodes, limit=limit).cost <= nodes * limit / 3600


def pairs(*effects: float | None) -> list[Meaning]:
    return [Meaning(one, False, 0.0) for one in effects]


def decide(*found: Meaning | None) -> str:
    return judge(found, deviation=0.1, min_gain=0.03, least=6, most=8).decision


def test_the_end_of_a_trial() -> None:
    better, worse = pairs(*[-0.4] * 8), pairs(*[0.4] * 8)
    assert decide() == ""
    assert decide(*better) == "keep"
    assert decide(*worse) == "harm"
    assert decide(*pairs(*[0.05, -0.2] * 4)) == "most"
    assert decide(*pairs(*[None] * 16)) == "most", "pairs that are no evidence end it too"
    assert decide(*pairs(-0.4, -0.4), Meaning(None, True, 1.0)) == "guard"
    assert decide(None, Meaning(None, True, 1.0)) == "guard", "a failure counts at once"


def test_no_pair_after_an_open_one_is_looked_at() -> None:
    better = pairs(*[-0.4] * 20)
    assert decide(None, *better) == ""
    assert decide(*better[:3], None, *better) == ""
    found = judge([*better[:3], None, *better], deviation=0.1, min_gain=0.03, least=6, most=8)
    assert (found.looked_at, found.evidence.pairs) == (3, 3)


def test_the_order_of_the_ends_changes_nothing_of_false_harm() -> None:
    """Jobs that take long end late. Without the rule above, a candidate that is slow would seem fast at first."""
    draw = random.Random(3)
    wrong = 0
    for _ in range(300):
        known: list[Meaning | None] = [None] * 12
        values = [draw.choice((-1, 1)) * draw.expovariate(5) for _ in known]
        # Pairs with a loss take longer, so their ends come last.
        decision = ""
        for place in sorted(range(12), key=lambda one: values[one]):
            known[place] = Meaning(values[place], False, 0.0)
            decision = decision or judge(known, deviation=0.2, min_gain=0.0, least=2, most=12).decision
        wrong += decision == "keep"
    assert wrong <= 300 * 0.05
