"""The index finds what brute force finds, at any time."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.linkage.score import FIELDS, Weights
from tests.factories.jobs import CLUSTER_NODES, NODES, Scenario
from tests.factories.linkage import Reference

ANT = Job("ann", "ant", "sbatch", "sbatch /home/ann/ant_17/sbatch", datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC), 2)
ALL_EVEN = Weights(*[1.0] * len(FIELDS))


def check(index: Index, reference: Reference, job: Job, at_least: float, cluster_nodes: int = CLUSTER_NODES) -> None:
    found, expected = index.nearest(job, cluster_nodes, at_least), reference.nearest(job, cluster_nodes, at_least)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.record == expected[0]
        assert found.score == pytest.approx(expected[1], abs=1e-9)
        assert sum(part.weight * part.similarity for part in found.parts) == pytest.approx(found.score, abs=1e-9)
        assert [part.field for part in found.parts] == list(FIELDS)


@pytest.mark.parametrize("weights", [Weights(), ALL_EVEN, Weights(user=0, name=0, program=0, path=1, options=1)])
def test_a_scenario_is_matched_as_by_brute_force(weights: Weights) -> None:
    scenario = Scenario(users=30, applications=100)
    records = [(str(place), job, place) for place, job in enumerate(scenario.jobs(2_000))]
    index = Index(weights)
    index.load(iter(records))
    assert len(index) == 2_000
    reference = Reference(records, weights)
    for place, job in enumerate(scenario.jobs(80, draw=1)):
        check(index, reference, job, (0.0, 0.77, 0.9)[place % 3])


def test_a_search_can_have_weights_and_a_night_of_its_own() -> None:
    scenario = Scenario(users=10, applications=40)
    usual, other = Index(), Index(ALL_EVEN, (1, 5))
    for index in (usual, other):
        index.load((str(place), job, place) for place, job in enumerate(scenario.jobs(200)))
    different = 0
    for job in scenario.jobs(20, draw=1):
        found = usual.nearest(job, CLUSTER_NODES, weights=ALL_EVEN, night=(1, 5))
        assert found == other.nearest(job, CLUSTER_NODES)
        different += found != usual.nearest(job, CLUSTER_NODES)
    assert different == 20


def test_many_records_that_only_path_and_options_tell_apart_are_matched_as_by_brute_force() -> None:
    source = random.Random(3)

    def word() -> str:
        return "".join(source.choices("abc", k=source.randint(1, 6)))

    def job() -> Job:
        line = (
            f"/{word()}/{word()}/{word()}/run {word()} --{word()[:2]} {word()[:2]} {word()[:2]} -{word()[0]}={word()}"
        )
        return replace(ANT, command_line=line)

    records = [(str(place), job(), place) for place in range(3_000)]
    index = Index()
    index.load(records)
    reference = Reference(records)
    for _ in range(20):
        check(index, reference, job(), 0.0)


short = st.text("abAB01_-./ =\u00e9\u0130\U0001f40d", max_size=8)
jobs = st.builds(
    Job,
    user=st.sampled_from(["ann", "bob", ""]),
    name=short,
    program=st.sampled_from(["sbatch", "b", "a.out"]) | short,
    command_line=st.lists(
        st.sampled_from(["/home/ann/b", "/home/anne/bb_1", "ab/aab", "-x", "--y=1", "--y", "1", "2", "2", "'"]) | short,
        max_size=6,
    ).map(" ".join),
    submitted_at=st.datetimes(min_value=datetime(2023, 1, 1), max_value=datetime(2028, 12, 31)).map(  # noqa: DTZ001
        lambda time: time.replace(tzinfo=UTC)
    ),
    nodes=st.integers(0, 12),
)
weights = st.builds(Weights, *[st.sampled_from([0.0, 0.1, 1.0])] * (len(FIELDS) - 1), nodes=st.just(0.5))
changes = st.lists(st.tuples(st.integers(0, 9), jobs | st.none()), min_size=1, max_size=25)


@settings(max_examples=300, deadline=None)
@given(changes, jobs, weights, st.sampled_from([0.0, 0.3, 0.6, 0.77]), st.sampled_from([(22, 6), (1, 5), (3, 3)]))
def test_any_records_are_matched_as_by_brute_force(
    changes: list[tuple[int, Job | None]], job: Job, weights: Weights, at_least: float, night: tuple[int, int]
) -> None:
    index = Index(weights, night)
    present: dict[str, tuple[Job, int]] = {}
    for order, (record, change) in enumerate(changes):
        if change is None:
            index.remove(str(record))
            present.pop(str(record), None)
        else:
            index.put(str(record), change, order)
            present[str(record)] = change, order
        reference = Reference([(name, *found) for name, found in present.items()], weights, night)
        assert len(index) == len(present)
        check(index, reference, job, at_least, 10)
    for other, _ in present.values():
        check(index, reference, other, at_least, 10)


def test_the_latest_of_equal_records_wins() -> None:
    index = Index()
    for record, order in (("b", 7), ("c", 9), ("a", 8)):
        index.put(record, ANT, order)
    found = index.nearest(ANT, 4)
    assert found is not None
    assert (found.record, found.score) == ("c", 1.0)
    index.put("c", ANT, 1)
    assert (again := index.nearest(ANT, 4)) is not None
    assert again.record == "a"


def test_nothing_is_found_below_the_least_score_or_without_records() -> None:
    index = Index()
    index.remove("unknown")
    assert index.nearest(ANT, 4) is None
    index.put("a", ANT, 1)
    other = replace(ANT, user="bob", name="xyz")
    assert (found := index.nearest(other, 4)) is not None
    assert 0.5 < found.score < 0.77
    assert index.nearest(other, 4, found.score) == found
    assert index.nearest(other, 4, found.score + 1e-6) is None
    index.remove("a")
    assert index.nearest(ANT, 4) is None
    assert len(index) == 0


def test_the_parts_of_a_score_are_those_of_the_fields() -> None:
    index = Index()
    index.put("a", ANT, 1)
    night = ANT.submitted_at + timedelta(hours=12, days=1)
    found = index.nearest(replace(ANT, name="ants", program="srun", submitted_at=night, nodes=3), 4)
    assert found is not None
    parts = {part.field: part.similarity for part in found.parts}
    assert parts == pytest.approx(
        {
            "user": 1,
            "name": 3 / 4,
            "program": 1 / 6,
            "path": 1,
            "options": 1,
            "second": 1,
            "minute": 1,
            "hour": 0,
            "day": 1 - math.sin(math.pi / 31),
            "weekday": 1 - math.sin(math.pi / 7),
            "night": 1,
            "nodes": 3 / 4,
        }
    )
    assert {part.field: part.weight for part in found.parts}["night"] == 0


def test_values_that_no_record_has_any_more_are_forgotten() -> None:
    scenario = Scenario(users=20, applications=50)
    index = Index()
    for place, job in enumerate(scenario.jobs(9_000)):
        index.put(str(place % 700), replace(job, name=f"{job.name}_{place}"), place)
    assert len(index) == 700
    assert len(index._store.names) <= 2 * 700 + 1024
    latest = list(enumerate(scenario.jobs(9_000)))[-700:]
    records = [(str(place % 700), replace(job, name=f"{job.name}_{place}"), place) for place, job in latest]
    reference = Reference(records)
    for job in scenario.jobs(40, draw=1):
        check(index, reference, job, 0.0)
    for record, _, _ in records:
        index.remove(record)
    assert index.nearest(ANT, 4) is None


def test_threads_find_what_they_have_put() -> None:
    index = Index()
    index.load((f"old {place}", job, place) for place, job in enumerate(Scenario(20, 50).jobs(500)))

    def work(thread: int) -> None:
        for place, job in enumerate(Scenario(20, 50).jobs(150, draw=thread + 1)):
            mine = replace(job, user=f"thread{thread}", name=f"{job.name}{place}")
            index.put(f"{thread} {place}", mine, 1000 + place)
            found = index.nearest(mine, CLUSTER_NODES, 0.77)
            assert found is not None
            assert (found.record, found.score) == (f"{thread} {place}", 1.0)
            if place % 2:
                index.remove(f"{thread} {place}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert len(index) == 500 + 4 * 75


def test_a_load_replaces_records() -> None:
    index = Index()
    index.load([("a", replace(ANT, nodes=nodes), nodes) for nodes in NODES])
    assert len(index) == 1
    assert (found := index.nearest(replace(ANT, nodes=NODES[-1]), CLUSTER_NODES)) is not None
    assert found.score == 1.0


def test_a_time_without_a_zone_changes_nothing() -> None:
    index = Index()
    with pytest.raises(InvalidInput, match="submitted_at"):
        index.put("a", replace(ANT, submitted_at=datetime(2026, 1, 1)), 1)  # noqa: DTZ001
    assert len(index) == 0


def test_a_job_can_be_compared_with_chosen_records() -> None:
    index = Index()
    for place, job in enumerate(Scenario(20, 50).jobs(50)):
        index.put(str(place), job, place)
    found = index.nearest(ANT, CLUSTER_NODES)
    assert found is not None
    similarities = index.compare(ANT, CLUSTER_NODES, ["3", found.record])
    assert similarities.shape == (2, len(FIELDS))
    assert similarities[1].tolist() == [part.similarity for part in found.parts]
    assert index.compare(ANT, CLUSTER_NODES, []).shape == (0, len(FIELDS))
    with pytest.raises(KeyError):
        index.compare(ANT, CLUSTER_NODES, ["unknown"])
