"""The contract of `service.algorithms.base.Algorithm` as tests, for algorithms of this project and of others.

The author of an installed algorithm runs them with a test file such as (docs/how-to/botorch.md):

    class TestMySearch(AlgorithmContract):
        names = ("my-search",)

They need pytest and Hypothesis (the extra `testing`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.algorithms import registry
from service.algorithms.base import Algorithm, Batch, Cost
from service.algorithms.entry import Entry
from service.core.edits import Edit, EditedSpace
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.ranges import with_ranges
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)
from service.core.trial import TrialRecord
from service.testing.random_spaces import changed_ranges, spaces

SECONDS = Objective("seconds", "minimize")
# A parameter of each kind, nested conditions with a child before its parent, a grid of each kind, constraints.
MIXED = Problem.build(
    Space.build(
        [
            IntParameter("factor", 1, 8, condition=Condition("unroll", (True,))),
            BoolParameter("unroll", condition=Condition("level", ("O2", "O3"))),
            CategoricalParameter("level", ("O1", "O2", "O3")),
            FloatParameter("rate", 1e-3, 10.0, log=True),
            FloatParameter("share", 0.0, 1.0, step=0.25),
            IntParameter("threads", 1, 16, factor=2.0),
            OrdinalParameter("block", (4, 16, 64, 256)),
        ],
        ["threads * 4 <= block", "factor <= threads or rate < 1"],
    ),
    [SECONDS],
)
# The same as a program has them that chooses its parameters while it runs.
OPTIONAL = Problem.build(
    Space(tuple(replace(one, optional=True) for one in MIXED.space.parameters), MIXED.space.constraints), [SECONDS]
)
# Nine configurations, of which constraints leave seven.
SMALL = Problem.build(
    Space.build(
        [
            IntParameter("n", 1, 3),
            BoolParameter("huge"),
            IntParameter("pages", 1, 2, condition=Condition("huge", (True,))),
        ],
        ["n + pages <= 4", "n <= 2 or huge"],
    ),
    [SECONDS],
    noisy=False,
)


def _scarce(parameters: Sequence[Parameter], *constraints: str) -> Problem:
    return Problem.build(Space.build(parameters, constraints), [SECONDS], noisy=False)


# Spaces of kernels, process grids and budgets, of which random draws hit almost nothing.
SCARCE: Mapping[str, Problem] = {
    "product": _scarce([IntParameter("a", 1, 4096), IntParameter("b", 1, 4096)], "a * b == 4096"),
    "grid": _scarce([IntParameter(name, 1, 512) for name in ("px", "py", "pz")], "px * py * pz == 512"),
    "order": _scarce([IntParameter(f"x{n}", 200, 8000) for n in range(8)], " <= ".join(f"x{n}" for n in range(8))),
    "divisors": _scarce(
        [IntParameter("LS", 1, 4096), IntParameter("WPT", 1, 4096)], "4096 % LS == 0", "(4096 // LS) % WPT == 0"
    ),
    "budget": _scarce(
        [FloatParameter(f"x{n}", 0, 1) for n in range(10)], " + ".join(f"x{n}" for n in range(10)) + " <= 1"
    ),
    "corner": _scarce([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)], "x + y <= 0.001"),
    "ordered floats": _scarce(
        [FloatParameter(f"x{n}", 0, 1) for n in range(8)], *(f"x{n} <= x{n + 1}" for n in range(7))
    ),
    "curve": _scarce(
        [FloatParameter("x", 0, 1), FloatParameter("y", 0, 1), IntParameter("n", 1, 64)],
        "x * x + y * y <= 1e-4",
        "n * x <= 0.01",
    ),
}

# Ranges that were narrowed and widened, choices that came and went.
OTHER = replace(
    MIXED,
    space=with_ranges(
        MIXED.space,
        {
            "factor": {"max": 5},
            "rate": {"min": 0.1, "max": 50.0},
            "share": {"min": 0.25, "max": 0.75},
            "threads": {"max": 4},
            "block": {"values": [16, 64, 512]},
        },
    ),
)

# A parameter was added, one with a child was fixed, and one was removed.
EDITED = EditedSpace(
    Space.build([*MIXED.space.parameters, IntParameter("depth", 1, 4)], [one.text for one in MIXED.space.constraints])
).edited(
    Edit.parse(
        {
            "add": [{"name": "cache", "type": "int", "min": 1, "max": 64, "log": True, "default": 8}],
            "fix": {"level": "O2", "share": 0.5},
            "remove": {"depth": 2},
        }
    )
)

# The algorithms that a test concerns, by the name of its argument.
CONCERNED: Mapping[str, Callable[[Entry], bool]] = {
    "name": lambda entry: True,
    "learner": lambda entry: entry.uses_history,
    "stateless": lambda entry: not entry.uses_history,
    "once": lambda entry: entry.uses_history or entry.name in ("random", "sobol", "lhs"),
    "seeded": lambda entry: entry.name != "grid",
    "cheap": lambda entry: entry.cost == Cost.CHEAP,
    "costly": lambda entry: entry.cost == Cost.COSTLY,
}
# Generated spaces are slow to make, and subclasses share the tests that use them.
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.differing_executors)


def configurations_of(problem: Problem, count: int, seed: int = 0) -> tuple[Configuration, ...]:
    """Return configurations from elsewhere."""
    return registry.create("random", problem, seed=seed, options={}).suggest(count, cursor=0).configurations


def seconds(configuration: Configuration) -> float:
    """Return any value of a configuration, the same in every process."""
    text = json.dumps(configuration, sort_keys=True)
    return sum(place * ord(letter) for place, letter in enumerate(text, start=1)) % 997 / 100


def completed(configurations: Sequence[Configuration], first: int = 1) -> list[TrialRecord]:
    """Return completed trials of configurations, with numbers from `first`."""
    return [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one)}, revision=number)
        for number, one in enumerate(configurations, start=first)
    ]


def active(configurations: Sequence[Configuration], first: int = 1) -> list[TrialRecord]:
    """Return running trials of configurations, with numbers from `first`."""
    return [TrialRecord(number, one, TrialState.ACTIVE, {}) for number, one in enumerate(configurations, start=first)]


def history(problem: Problem, count: int) -> list[TrialRecord]:
    """Return trials of configurations from elsewhere, in every final state."""
    configurations = configurations_of(problem, count, seed=99)
    trials = completed(configurations)
    states = {3: TrialState.INFEASIBLE, 4: TrialState.FAILED, 5: TrialState.PRUNED}
    return [
        TrialRecord(
            trial.number,
            trial.configuration,
            states.get(trial.number, trial.state),
            {} if trial.number in (3, 4) else trial.metrics,
            revision=trial.revision,
        )
        for trial in trials
    ]


def check(problem: Problem, batch: Batch, fixed: Mapping[str, Scalar] | None = None) -> None:
    """Fail unless every suggestion is valid, spelt exactly, feasible, and has the fixed values."""
    for configuration in batch.configurations:
        assert repr(problem.space.validate(configuration)) == repr(configuration)
        for name, value in (fixed or {}).items():
            assert repr(configuration[name]) == repr(value)


def carried_over(problem: Problem, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the trials inside a changed space, which are the only ones that a tuner gets."""
    inside = [(trial, problem.space.inside(trial.configuration)) for trial in trials]
    return [replace(trial, configuration=one) for trial, one in inside if one is not None]


class AlgorithmContract:
    """The tests of an algorithm. A subclass names the algorithms, and a test has a case for each of them."""

    names: ClassVar[Sequence[str]] = ()
    # Options of an algorithm, by its name, such as ones that make it quick.
    options: ClassVar[Mapping[str, Mapping[str, object]]] = {}

    def create(self, name: str, problem: Problem, seed: int = 0) -> Algorithm:
        """Return a new algorithm. A subclass may create it in another way."""
        return registry.create(name, problem, seed=seed, options=self.options.get(name, {}))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give a test a case for each algorithm that the name of its argument stands for."""
        for argument, concerns in CONCERNED.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, [name for name in self.names if concerns(registry.describe(name))])

    def test_cost_and_use_of_history_match_the_registry(self, name: str) -> None:
        entry, algorithm = registry.describe(name), self.create(name, MIXED)
        assert (algorithm.cost, algorithm.uses_history) == (entry.cost, entry.uses_history)

    def test_suggests_as_many_as_asked_from_nothing(self, name: str) -> None:
        batch = self.create(name, MIXED).suggest(5, cursor=0)
        check(MIXED, batch)
        assert len(batch.configurations) == 5
        assert not batch.exhausted

    def test_suggests_from_a_history_of_every_outcome(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        algorithm.update(history(MIXED, 12))
        batch = algorithm.suggest(3, cursor=12, pending=active(configurations_of(MIXED, 2, seed=5), first=20))
        check(MIXED, batch)
        assert len(batch.configurations) == 3

    def test_learns_from_trials_that_lack_optional_parameters(self, name: str) -> None:
        space = OPTIONAL.space
        lacking = [
            space.prune({key: value for key, value in one.items() if key != missing})
            for one in configurations_of(OPTIONAL, 3, seed=5)
            for missing in one
        ]
        algorithm = self.create(name, OPTIONAL)
        algorithm.update(completed(lacking))
        batch = algorithm.suggest(3, cursor=len(lacking), pending=active([{"block": 4}, {}], first=90))
        check(OPTIONAL, batch)
        assert [one.keys() for one in batch.configurations] == [{*space.active(one)} for one in batch.configurations]

    def test_takes_replicates_and_trials_of_any_origin(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        configurations = configurations_of(MIXED, 4, seed=5)
        origins = ("default", "suggested", "replicate", "check", "added", "replicate")
        algorithm.update(
            [
                TrialRecord(
                    number,
                    configurations[number % 3],
                    TrialState.PRUNED if number == 7 else TrialState.COMPLETED,
                    {"seconds": 1.0 + number % 4},
                    revision=number,
                    seconds=None if number % 2 else 1.5,
                    origin=origins[number % len(origins)],
                )
                for number in range(1, 25)
            ]
        )
        # Among them replicates that wait to be stored, and so have no number yet.
        running = [TrialRecord(number, configurations[3], TrialState.ACTIVE, {}, origin="check") for number in (25, 26)]
        waiting = [TrialRecord(0, configurations[0], TrialState.REQUESTED, {}, origin="replicate")] * 2
        check(MIXED, batch := algorithm.suggest(3, cursor=9, pending=[*running, *waiting]))
        assert len(batch.configurations) == 3

    def test_learns_from_failures_alone(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        configurations = configurations_of(MIXED, 12, seed=5)
        algorithm.update(
            [TrialRecord(n, one, TrialState.INFEASIBLE, {}, n) for n, one in enumerate(configurations[:6], start=1)]
        )
        algorithm.update(
            [TrialRecord(n, one, TrialState.FAILED, {}, n) for n, one in enumerate(configurations[6:], start=7)]
        )
        check(MIXED, batch := algorithm.suggest(2, cursor=0))
        assert len(batch.configurations) == 2

    def test_suggest_changes_nothing(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        algorithm.update(history(MIXED, 8))
        first = algorithm.suggest(2, cursor=3)
        # What the caller does with an answer is no business of the algorithm's.
        again = algorithm.suggest(2, cursor=3)
        for configuration in again.configurations:
            configuration.clear()
        assert repr(algorithm.suggest(2, cursor=3)) == repr(first)

    def test_same_seed_and_calls_give_the_same_suggestions(self, name: str) -> None:
        def run() -> list[str]:
            algorithm = self.create(name, MIXED, seed=7)
            answers, cursor = [], 0
            trials = history(MIXED, 8)
            for part in (trials[:5], trials[5:]):
                algorithm.update(part)
                batch = algorithm.suggest(
                    2, cursor=cursor, pending=active(configurations_of(MIXED, 1, seed=5), first=30)
                )
                cursor = batch.cursor
                answers.append(repr(batch))
            return answers

        assert run() == run()

    def test_another_seed_gives_other_suggestions(self, seeded: str) -> None:
        answers = {repr(self.create(seeded, MIXED, seed=seed).suggest(4, cursor=0)) for seed in (0, 1, 2**63 - 1)}
        assert len(answers) == 3

    def test_fixed_values_are_honoured(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        algorithm.update(history(MIXED, 8))
        # A child's value makes its parents active; a parent's value keeps its children out.
        parts: list[dict[str, Scalar]] = [
            {"factor": 3},
            {"level": "O1", "share": 0.25},
            {"rate": 0.123456},
            {"unroll": False, "block": 64},
        ]
        for fixed in parts:
            batch = algorithm.suggest(2, cursor=0, fixed=fixed)
            check(MIXED, batch, fixed)
            assert len(batch.configurations) == 2

    @pytest.mark.parametrize(
        ("fixed", "field"),
        [
            ({"nothing": 1}, "fixed.nothing"),
            ({"share": 0.3}, "fixed.share"),
            ({"factor": 3, "level": "O1"}, "fixed.factor"),
        ],
    )
    def test_impossible_fixed_values_are_refused(self, name: str, fixed: Mapping[str, Scalar], field: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            self.create(name, MIXED).suggest(1, cursor=0, fixed=fixed)
        assert caught.value.data["field"] == field

    @pytest.mark.parametrize(
        "space",
        [
            Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)], ["x + y > 3"]),
            Space.build([IntParameter("n", 1, 9), BoolParameter("huge")], ["n > 10 or n < 1"]),
            Space.build([IntParameter("n", 1, 2**40), IntParameter("m", 1, 2**40)], ["n * m < 0"]),
        ],
        ids=["continuous", "finite", "large"],
    )
    def test_space_without_a_feasible_point_is_an_error(self, name: str, space: Space) -> None:
        with pytest.raises(InvalidInput) as caught:
            self.create(name, Problem.build(space, [SECONDS])).suggest(1, cursor=0)
        assert caught.value.code == "no_feasible_configuration"
        assert caught.value.data["field"] == "constraints"

    def test_fixed_values_that_break_a_constraint_are_an_error(self, name: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            self.create(name, MIXED).suggest(1, cursor=0, fixed={"threads": 16, "block": 4})
        assert caught.value.code == "no_feasible_configuration"
        assert caught.value.data["field"] == "fixed"

    def test_space_of_one_configuration(self, name: str) -> None:
        problem = Problem.build(Space.build([IntParameter("n", 3, 3), CategoricalParameter("a", ("x",))]), [SECONDS])
        batch = self.create(name, problem).suggest(1, cursor=0)
        assert batch.configurations == ({"n": 3, "a": "x"},)

    def test_space_of_one_continuous_parameter(self, name: str) -> None:
        problem = Problem.build(Space.build([FloatParameter("x", -1e9, 1e9)]), [SECONDS])
        batch = self.create(name, problem).suggest(3, cursor=0)
        check(problem, batch)
        assert len({repr(one) for one in batch.configurations}) == 3

    def test_huge_space_is_no_burden(self, name: str) -> None:
        flags = [BoolParameter(f"flag{index}") for index in range(40)]
        problem = Problem.build(
            Space.build([*flags, IntParameter("n", -(2**63), 2**63 - 1)], ["flag0 + flag1 <= 1"]), [SECONDS]
        )
        algorithm = self.create(name, problem)
        check(problem, batch := algorithm.suggest(2, cursor=0))
        algorithm.update(completed(batch.configurations))
        check(problem, algorithm.suggest(1, cursor=batch.cursor))

    def test_several_objectives(self, name: str) -> None:
        entry = registry.describe(name)
        problem = Problem.build(SMALL.space, [SECONDS, Objective("rate", "maximize")])
        if entry.most_objectives == 1:
            with pytest.raises(InvalidInput) as caught:
                self.create(name, problem)
            assert caught.value.data["field"] == "algorithm.name"
            return
        algorithm = self.create(name, problem)
        trials = [
            TrialRecord(
                one.number, one.configuration, one.state, {**one.metrics, "rate": float(one.number)}, one.revision
            )
            for one in completed(configurations_of(problem, 4))
        ]
        algorithm.update(trials)
        check(problem, batch := algorithm.suggest(2, cursor=0))
        assert len(batch.configurations) == 2

    def test_state_is_json_and_helps_another_process(self, name: str) -> None:
        trials = history(MIXED, 12)
        algorithm = self.create(name, MIXED)
        algorithm.update(trials)
        algorithm.suggest(1, cursor=0)
        stored = json.loads(json.dumps(algorithm.dump(), allow_nan=False))
        other = self.create(name, MIXED)
        other.load(stored)
        other.update(trials)
        check(MIXED, batch := other.suggest(2, cursor=0))
        assert len(batch.configurations) == 2

    @pytest.mark.parametrize("state", [None, {}, [], "nonsense", {"version": -1, "models": 3}])
    def test_state_of_no_use_is_ignored(self, name: str, state: object) -> None:
        algorithm = self.create(name, SMALL)
        algorithm.load(state)  # type: ignore[arg-type]
        check(SMALL, algorithm.suggest(1, cursor=0))

    def test_noiseless_study_goes_through_a_finite_space_once(self, once: str) -> None:
        everything = SMALL.space.enumerate(100)
        assert everything is not None
        algorithm = self.create(once, SMALL)
        found: list[Configuration] = [everything[2]]  # one that the user brought along
        algorithm.update(completed(found))
        cursor = 0
        for count in (2, 1, 2, 9):
            batch = algorithm.suggest(count, cursor=cursor, pending=())
            check(SMALL, batch)
            assert len(batch.configurations) == min(count, len(everything) - len(found))
            assert batch.exhausted == (len(batch.configurations) < count)
            algorithm.update(completed(batch.configurations, first=len(found) + 1))
            found += batch.configurations
            cursor = batch.cursor
        assert sorted(map(repr, found)) == sorted(map(repr, everything))
        nothing_left = algorithm.suggest(1, cursor=cursor)
        assert (nothing_left.configurations, nothing_left.exhausted) == ((), True)

    def test_infeasible_trials_count_as_measured(self, once: str) -> None:
        problem = Problem.build(Space.build([IntParameter("n", 1, 4)]), [SECONDS], noisy=False)
        algorithm = self.create(once, problem)
        found: list[Scalar] = []
        cursor = 0
        while not (batch := algorithm.suggest(1, cursor=cursor)).exhausted:
            cursor = batch.cursor
            found += [one["n"] for one in batch.configurations]
            trials = [TrialRecord(len(found), batch.configurations[0], TrialState.INFEASIBLE, {}, len(found))]
            algorithm.update(trials)
            assert len(found) <= 4
        assert sorted(map(str, found)) == ["1", "2", "3", "4"]

    @pytest.mark.parametrize("problem", [SCARCE[name] for name in SCARCE], ids=list(SCARCE))
    def test_few_feasible_configurations_are_found(self, once: str, problem: Problem) -> None:
        algorithm = self.create(once, problem)
        started = time.thread_time()
        batch = algorithm.suggest(4, cursor=0)
        check(problem, batch)
        algorithm.update(completed(batch.configurations))
        further = algorithm.suggest(6, cursor=batch.cursor)
        check(problem, further)
        found = [problem.space.key(one) for one in (*batch.configurations, *further.configurations)]
        # A grid of a continuum may have fewer feasible points.
        assert len(set(found)) == len(found) == 10 or once in ("grid", "factorial", "fractional")
        # Seconds at most; the bound is for a machine that is busy.
        assert time.thread_time() - started < 120

    def test_few_feasible_configurations_are_exhausted(self, once: str) -> None:
        problem = SCARCE["product"]
        algorithm = self.create(once, problem)
        found: list[Configuration] = []
        cursor = 0
        for count in (5, 20):
            batch = algorithm.suggest(count, cursor=cursor)
            check(problem, batch)
            cursor = batch.cursor
            algorithm.update(completed(batch.configurations, first=len(found) + 1))
            found += batch.configurations
        assert batch.exhausted
        assert len({problem.space.key(one) for one in found}) == len(found) == 13

    def test_pending_trials_are_not_suggested_again(self, once: str) -> None:
        everything = SMALL.space.enumerate(100)
        assert everything is not None
        algorithm = self.create(once, SMALL)
        pending: list[TrialRecord] = []
        cursor = 0
        while len(pending) < len(everything):
            batch = algorithm.suggest(1, cursor=cursor, pending=pending)
            cursor = batch.cursor
            pending += active(batch.configurations, first=len(pending) + 1)
        assert sorted(repr(trial.configuration) for trial in pending) == sorted(map(repr, everything))
        assert algorithm.suggest(1, cursor=cursor, pending=pending).exhausted

    def test_part_of_a_space_is_exhausted_by_itself(self, once: str) -> None:
        algorithm = self.create(once, SMALL)
        part = algorithm.suggest(10, cursor=0, fixed={"pages": 1})
        assert part.exhausted
        assert sorted(repr(one) for one in part.configurations) == sorted(
            repr({"n": n, "huge": True, "pages": 1}) for n in (1, 2, 3)
        )
        rest = algorithm.suggest(10, cursor=part.cursor, pending=active(part.configurations))
        assert rest.exhausted
        everything = SMALL.space.enumerate(100)
        assert everything is not None
        assert sorted(map(repr, part.configurations + rest.configurations)) == sorted(map(repr, everything))

    def test_sequence_depends_on_seed_and_cursor_alone(self, stateless: str) -> None:
        whole = self.create(stateless, MIXED, seed=3).suggest(150, cursor=0)
        check(MIXED, whole)
        parts: list[Configuration] = []
        cursor = 0
        for count in (1, 2, 60, 87):
            # An algorithm of its own each time, as after a restart, and one that has been elsewhere before.
            algorithm = self.create(stateless, MIXED, seed=3)
            algorithm.suggest(2, cursor=1000)
            batch = algorithm.suggest(count, cursor=cursor)
            parts += batch.configurations
            cursor = batch.cursor
        assert repr(parts) == repr(list(whole.configurations))
        assert cursor == whole.cursor

    def test_sequence_never_ends(self, stateless: str) -> None:
        batch = self.create(stateless, replace(SMALL, noisy=True)).suggest(50, cursor=10**7)
        check(SMALL, batch)
        assert len(batch.configurations) == 50
        assert not batch.exhausted

    def test_goes_on_in_an_edited_space(self, name: str) -> None:
        before = replace(MIXED, space=Space(EDITED.declared.parameters[:-1], MIXED.space.constraints))
        after = replace(MIXED, space=EDITED.searched)
        elsewhere = configurations_of(before, 60, seed=99)
        present = [
            EDITED.present({**one, "level": "O2", "share": 0.5, "depth": 2 + place % 2})
            for place, one in enumerate(elsewhere)
        ]
        kept = [one for one in present if one is not None]
        assert 3 < len(kept) < 60
        algorithm = self.create(name, after, seed=1)
        algorithm.update(completed(kept[:-1]))
        check(after, batch := algorithm.suggest(3, cursor=0, pending=active(kept[-1:], first=len(kept))))
        assert len(batch.configurations) == 3
        assert (
            all(one["cache"] != 8 for one in batch.configurations)
            or len({str(one) for one in batch.configurations}) == 3
        )

    def test_goes_on_in_a_space_of_other_ranges(self, name: str) -> None:
        algorithm = self.create(name, MIXED)
        trials = completed(configurations_of(MIXED, 150, seed=99))
        algorithm.update(trials[:20])
        cursor = algorithm.suggest(2, cursor=0).cursor
        other = self.create(name, OTHER, seed=1)
        # Nobody loads what was learned of the old space; if somebody did, it would be of no use and do no harm.
        other.load(algorithm.dump())
        reported = carried_over(OTHER, trials)
        assert 3 < len(reported) < 30
        other.update(reported)
        pending = active(configurations_of(OTHER, 2, seed=5), first=160)
        for start in (0, cursor):
            check(OTHER, batch := other.suggest(2, cursor=start, pending=pending))
            assert len(batch.configurations) == 2
        fixed: dict[str, Scalar] = {"block": 512, "share": 0.75}
        check(OTHER, batch := other.suggest(1, cursor=0, fixed=fixed), fixed)
        assert len(batch.configurations) == 1

    @settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
    @given(data=st.data())
    def test_nothing_outside_of_other_ranges_is_suggested(self, cheap: str, data: st.DataObject) -> None:
        self.nothing_outside(cheap, data)

    @settings(max_examples=3, deadline=None, suppress_health_check=SLOW)
    @given(data=st.data())
    def test_nothing_outside_of_other_ranges_is_suggested_at_length(self, costly: str, data: st.DataObject) -> None:
        self.nothing_outside(costly, data)

    def nothing_outside(self, name: str, data: st.DataObject) -> None:
        space = data.draw(spaces(most_parameters=4))
        before = Problem.build(space, [SECONDS])
        after = Problem.build(with_ranges(space, data.draw(changed_ranges(space))), [SECONDS])
        trials = completed(configurations_of(before, 12))
        algorithm = self.create(name, after)
        algorithm.update(carried_over(after, trials[:9]))
        pending = carried_over(after, active([trial.configuration for trial in trials[9:]], first=10))
        check(after, algorithm.suggest(3, cursor=0, pending=pending))
