"""The measured tables that replays read."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from service.core.space import Space
from tests.benchmarks.replays import by_truth_of, measured
from tests.benchmarks.tables import DATA, NOISY, TABLES, Table

WORKLOADS = Path(__file__).parents[3] / "agents" / "workloads"
MEASURED = [one for one in TABLES.values() if one.path.exists()]


def test_every_table_is_described_and_all_are_small() -> None:
    assert {path.name for path in DATA.glob("*.csv.gz")} == {one.path.name for one in MEASURED}
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 5 << 20


@pytest.mark.parametrize("one", MEASURED, ids=lambda one: one.name)
def test_a_table_is_a_whole_grid_with_its_defaults(one: Table) -> None:
    subject = one.subject()
    everything = Space.build(subject.problem.space.parameters, one.constraints).enumerate(10_000)
    assert everything is not None
    assert all(subject.row(configuration) is not None for configuration in everything)
    assert len(subject.truth) == len(everything)
    for name, values in one.grid.items():
        assert subject.problem.space[name].size() == len(values)
    assert subject.default is not None
    if one.scaled is not None:
        assert subject.row({**one.scaled}) is not None
    counts = [len(values) for values in measured(subject).values]
    assert np.median(counts) >= one.replicates
    assert min(counts) >= 2


@pytest.mark.parametrize("one", [one for one in NOISY if one in MEASURED], ids=lambda one: one.name)
def test_a_noisy_table_is_judged_by_the_quiet_one(one: Table) -> None:
    subject, quiet = one.subject(), TABLES[one.application].subject()
    judge = by_truth_of(subject, quiet)
    best = min(subject.problem.space.enumerate(10_000) or (), key=lambda found: judge.truth[subject.row(found), 0])
    assert judge.truth[subject.row(best), 0] == quiet.truth[quiet.row(best), 0]
    assert (judge.truth != subject.truth).any()


def test_the_tables_of_small_reads_are_the_grid_of_the_study_file() -> None:
    study = yaml.safe_load((WORKLOADS / "small-read-optimizer" / "study.yml").read_text())["parameters"]
    table = TABLES["sro-1"]
    assert {name: tuple(one["values"]) for name, one in study.items()} == table.grid
    assert {name: one["default"] for name, one in study.items()} == table.scaled
