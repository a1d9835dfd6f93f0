"""The roll-out of kept settings: whatever its trials find, what is compared and held back makes sense."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service.policies import rollout as policy
from service.policies.rollout import ALL, MOST_TRIES, STAGE, WEEK, Rollout


def begin(instances: str = "abcdef", kept_on: str = "a", wanted: Any = (1, 3, ALL), **changes: Any) -> Rollout:
    given: dict[str, Any] = {"before": {"x": 1}, "original": {"x": 1}, "watch": 86_400.0, "now": 0.0, **changes}
    return policy.begin(4, {"x": 2}, instances=list(instances), kept_on=list(kept_on), wanted=wanted, **given)


def test_settings_go_to_1_3_and_all_instances_but_the_one_that_is_held_back() -> None:
    first = begin()
    assert (first.stages, first.in_force, first.held_back) == ((1, 3, 5), ("a",), ("f",))
    step = first.next_step()
    assert (step.kind, step.design, step.places, step.count) == (STAGE, "canary", ("b", "c", "d", "e", "f"), 2)
    second = first.stage_kept(10.0)
    assert (second.stage, second.in_force, second.is_rolling) == (2, ("a", "b", "c"), True)
    last = second.stage_kept(20.0)
    assert (last.in_force, last.is_rolling, last.watched_until) == (tuple("abcde"), False, 86_420.0)
    check = last.next_step()
    assert (check.design, check.places, check.durable) == ("crossover", ("a", "f", "b", "c", "d", "e"), True)
    assert last.checked([0.1], 0.05, 86_420.0) is None


def test_a_long_watch_checks_each_week_on_another_instance_and_carries_the_evidence_on() -> None:
    found = begin("abc", watch=3 * WEEK, wanted=[ALL]).stage_kept(0.0)
    assert (found.due_at, found.next_step().places) == (WEEK, ("a", "c"))
    following = found.checked([-0.1, -0.2], 0.07, WEEK)
    assert following is not None
    assert (following.due_at, following.next_step().places, following.effects) == (2 * WEEK, ("b", "c"), (-0.1, -0.2))
    assert following.deviation == 0.07
    last = following.checked([-0.3], 0.5, 2 * WEEK)
    assert last is not None
    assert (last.due_at, last.deviation, last.next_step().durable) == (3 * WEEK, 0.07, True)


def test_few_instances_are_checked_by_blocks() -> None:
    one = begin("a")
    assert (one.is_rolling, one.held_back, one.next_step().design) == (False, (), "switchback")
    two = begin("ab")
    assert (two.next_step().design, two.next_step().places) == ("switchback", ("b",))
    assert two.stage_kept(1.0).next_step().places == ("a", "b")


def test_a_stage_that_never_decides_is_left_out_and_what_is_in_force_is_watched() -> None:
    found = begin()
    for _ in range(MOST_TRIES):
        assert found.is_rolling
        found = found.interrupted("the window has ended", 5.0)
    assert (found.is_rolling, found.held, found.in_force) == (False, "the window has ended", ("a",))
    assert found.held_back == ("f", "b", "c", "d", "e")
    for _ in range(MOST_TRIES):
        found = found.interrupted("the window has ended", 90_000.0)
    assert found.due_at == 93_600.0, "a check is tried again after an hour"


def test_a_study_that_goes_to_some_instances_only_leaves_the_others() -> None:
    found = begin(wanted=[1, 2])
    assert (found.stages, found.instances, found.held_back) == ((1, 2), ("a", "b"), ("f", "c", "d", "e"))


def test_a_further_kept_step_holds_the_same_instance_back() -> None:
    found = begin("abcde", "a", held_back=["f"])
    assert (found.held_back, found.stages) == (("f",), (1, 3, 5))


class Rolling(RuleBasedStateMachine):
    """Trials of a roll-out that end in any way."""

    rollout: Rollout | None = None
    fleet: frozenset[str] = frozenset()
    now = 0.0
    stages = 0

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 8))
        fleet = [f"i{place}" for place in range(count)]
        numbers = data.draw(st.lists(st.integers(1, 10), unique=True, max_size=3).map(sorted))
        wanted = [*numbers, *([ALL] if not numbers or data.draw(st.booleans()) else [])]
        first = min(count, wanted[0]) if isinstance(wanted[0], int) else data.draw(st.integers(1, min(2, count)))
        watch = data.draw(st.sampled_from([0.0, 3600.0, 86_400.0, WEEK, 5 * WEEK]))
        self.fleet = frozenset(fleet)
        self.rollout = begin(fleet, fleet[:first], wanted, watch=watch)  # type: ignore[arg-type]

    def is_rolling(self) -> bool:
        return self.rollout is not None and self.rollout.is_rolling

    def is_watching(self) -> bool:
        return self.rollout is not None and not self.rollout.is_rolling

    @precondition(is_rolling)
    @rule()
    def keep(self) -> None:
        assert self.rollout is not None
        before, step = self.rollout, self.rollout.next_step()
        self.rollout = before.stage_kept(self.now)
        assert self.rollout.in_force == (*before.in_force, *step.places[: step.count])
        self.stages += 1

    @precondition(is_watching)
    @rule(count=st.integers(0, 300))
    def check(self, count: int) -> None:
        assert self.rollout is not None
        self.now = max(self.now, self.rollout.due_at)
        step = self.rollout.next_step()
        following = self.rollout.checked([0.01] * count, 0.1, self.now)
        assert (following is None) == step.durable
        if following is not None:
            assert following.due_at > self.rollout.due_at
        else:
            # The last check has every instance that is to have the settings, and the one that was held back.
            assert set(self.rollout.in_force) | set(self.rollout.held_back[:1]) == set(step.places)
        self.rollout = following

    @precondition(lambda self: self.rollout is not None)
    @rule(seconds=st.floats(0, 1e6))
    def interrupt(self, seconds: float) -> None:
        assert self.rollout is not None
        self.now += seconds
        self.rollout = self.rollout.interrupted("why", self.now)

    @precondition(is_rolling)
    @rule()
    def decline(self) -> None:
        assert self.rollout is not None
        self.rollout = self.rollout.hold("declined", self.now)

    @rule(seconds=st.floats(0, 1e6))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def it_makes_sense(self) -> None:
        found = self.rollout
        if found is None:
            return
        assert Rollout.from_json(json.loads(json.dumps(found.to_json()))) == found
        assert set(found.in_force) <= set(found.instances)
        assert not set(found.in_force) & set(found.held_back)
        assert set(found.instances) | set(found.held_back) == self.fleet
        assert self.stages <= 4
        if len(self.fleet) >= 3 and len(found.in_force) < len(self.fleet):
            assert found.held_back
        step = found.next_step()
        assert len(set(step.places)) == len(step.places)
        assert step.places
        assert set(step.places) <= self.fleet
        if step.kind == STAGE:
            assert step.count >= 1
            assert not set(step.places) & set(found.in_force)
            assert (step.design == "canary") == (len(step.places) > step.count)
            assert step.design == "canary" or step.count == 1
        else:
            assert step.places[0] in found.in_force
            assert (step.design == "crossover") == (len(step.places) > 1)


TestRolling = Rolling.TestCase
TestRolling.settings = settings(max_examples=40, stateful_step_count=10, deadline=None)
