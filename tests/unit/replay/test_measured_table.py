"""Tables of measurements: what they become, and what is wrong with them, said before anything runs."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.core.errors import InvalidInput
from service.core.space import CategoricalParameter, Condition, OrdinalParameter
from service.replay.measured_table import Selection, load
from service.replay.subject import Subject

OPENMPI = Path(__file__).parents[4] / "shared" / "data" / "openmpi_collectives.csv"
TABLE = """\
tool,threads,note,seconds,rate,took
gz,1,,10,5,11
gz,2,,6,7,7
xz,1,cold,20,2,21
gz,1,,12,5,13
xz,2,,18,3,19
gz,2,,8,6,9
"""


def write(tmp_path: Path, text: str = TABLE) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    return path


def read(tmp_path: Path, text: str = TABLE, **changes: Any) -> Subject:
    given: dict[str, Any] = {"parameters": ["tool", "threads"], "metrics": ["seconds"], **changes}
    return load(write(tmp_path, text), Selection(**given))


def refusal(tmp_path: Path, text: str = TABLE, **changes: Any) -> Mapping[str, Any]:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text, **changes)
    return caught.value.data


def test_rows_that_agree_on_the_parameters_are_replicates(tmp_path: Path) -> None:
    subject = read(tmp_path)
    tool, threads = subject.problem.space.parameters
    assert tool == CategoricalParameter("tool", ("gz", "xz"))
    assert threads == OrdinalParameter("threads", (1, 2))
    assert subject.problem.noisy
    rows = [subject.row({"tool": tool, "threads": threads}) for tool in ("gz", "xz") for threads in (1, 2)]
    assert [subject.truth[row, 0] for row in rows] == [11, 7, 20, 18]
    assert subject.optimum == 7


def test_a_compressed_table_is_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    subject = load(path, Selection(parameters=["tool", "threads"], metrics=["seconds"]))
    assert subject.name == "runs"
    assert (subject.truth == read(tmp_path).truth).all()


# The names are given because the bytes hold the time of compression, and all workers must collect the same names.
@pytest.mark.parametrize(
    "content", [TABLE.encode(), gzip.compress(TABLE.encode())[:-20]], ids=["not compressed", "cut off"]
)
def test_a_broken_compressed_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="table") as caught:
        load(path, Selection(parameters=["tool"], metrics=["seconds"]))
    assert str(path) in caught.value.message


def test_a_run_is_one_of_the_replicates(tmp_path: Path) -> None:
    subject = read(tmp_path, seconds="took")
    row = subject.row({"tool": "gz", "threads": 1})
    assert row is not None
    drawn = [subject.measure(row, clock=0, seed=3, visit=visit) for visit in range(40)]
    assert {(one.values[0], one.seconds) for one in drawn} == {(10, 11), (12, 13)}
    again = [subject.measure(row, clock=9, seed=3, visit=visit) for visit in range(40)]
    assert [one.values[0] for one in again] == [one.values[0] for one in drawn]


def test_several_metrics_with_their_own_directions(tmp_path: Path) -> None:
    subject = read(tmp_path, metrics=["seconds", "rate:max"])
    assert [(one.metric, one.goal) for one in subject.problem.objectives] == [
        ("seconds", "minimize"),
        ("rate", "maximize"),
    ]
    assert subject.truth.shape == (4, 2)
    # gz with two threads is better at both than anything else
    assert list(subject.front) == [subject.row({"tool": "gz", "threads": 2})]


def test_maximize_median_and_default(tmp_path: Path) -> None:
    subject = read(tmp_path, metrics=["rate"], maximize=True, truth="median", default={"tool": "xz", "threads": "1"})
    assert subject.optimum == -6.5
    assert subject.default is not None
    assert subject.default[0] == 2


def test_where_takes_rows_by_number_or_text(tmp_path: Path) -> None:
    assert read(tmp_path, parameters=["tool"], where={"threads": "2.0"}).truth.tolist() == [[7.0], [18.0]]
    assert read(tmp_path, parameters=["threads"], where={"tool": "xz"}).problem.noisy is False


def test_configurations_that_are_not_in_the_table_do_not_exist(tmp_path: Path) -> None:
    subject = read(tmp_path, TABLE.replace("xz,2,,18,3,19\n", ""))
    assert subject.row({"tool": "xz", "threads": 2}) is None
    assert subject.row({"tool": "xz", "threads": 1}) is not None


def test_empty_cells_of_a_conditional_parameter_are_its_condition(tmp_path: Path) -> None:
    text = "algorithm,segment,seconds\n0,,5\n1,64,4\n1,128,3\n2,64,6\n2,128,7\n"
    subject = read(
        tmp_path, text, parameters=["algorithm", "segment"], categorical=["algorithm"], conditional=["segment"]
    )
    assert subject.problem.space["segment"].condition == Condition("algorithm", (1, 2))
    assert subject.row({"algorithm": 0}) == 0
    rows = {subject.row({"algorithm": a, "segment": s}) for a in (1, 2) for s in (64, 128)}
    assert rows == {1, 2, 3, 4}


@pytest.mark.skipif(not OPENMPI.exists(), reason="the measured tables are not here")
def test_measured_table_of_collectives() -> None:
    subject = load(
        OPENMPI,
        Selection(
            parameters=["algorithm", "segmentsize", "fanout"],
            categorical=["algorithm"],
            metrics=["median_us"],
            where={"collective": "bcast"},
        ),
    )
    assert subject.truth.shape == (100, 1)
    assert subject.problem.noisy
    assert subject.optimum == pytest.approx(269.634)
    best = subject.row({"algorithm": 1, "segmentsize": 16384, "fanout": 4})
    assert subject.distances()[best] == 0


def test_parquet_is_read_where_pyarrow_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    parquet.write_table(pyarrow.table({"threads": [1, 2, 1], "seconds": [3.0, 2.0, 4.0]}), path)
    subject = load(path, Selection(parameters=["threads"], metrics=["seconds"]))
    assert subject.truth.tolist() == [[3.5], [2.0]]


def test_the_error_without_pyarrow_names_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "runs.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match="pip install pyarrow"):
        load(path, Selection(parameters=["threads"], metrics=["seconds"]))


@pytest.mark.parametrize(
    ("changes", "field", "value", "allowed"),
    [
        ({"metrics": ["speed"]}, "metric", "speed", "seconds"),
        ({"parameters": ["tool", "cores"]}, "parameters", "cores", "threads"),
        ({"parameters": []}, "parameters", None, "threads"),
        ({"categorical": ["cores"]}, "categorical", "cores", "threads"),
        ({"categorical": ["rate"]}, "categorical", "rate", "tool, threads"),
        ({"where": {"host": "a"}}, "where", "host", "tool"),
        ({"where": {"tool": "bz2"}}, "where.tool", "bz2", "gz, xz"),
        ({"seconds": "wall"}, "seconds", "wall", "took"),
        ({"default": {"tool": "bz2", "threads": "1"}}, "default.tool", "bz2", "'gz', 'xz'"),
        ({"default": {"tool": "gz"}}, "default.threads", None, "one of 1, 2"),
        ({"truth": "best"}, "truth", "best", "mean, median"),
        ({"parameters": ["tool", "seconds"]}, "metric", "seconds", "not a parameter"),
        ({"parameters": ["tool", "threads", "note"]}, "note in line 2", None, "conditional"),
        ({"parameters": ["tool", "threads", "note"], "conditional": ["note"]}, "conditional", "note", "exactly when"),
        ({"metrics": ["note"]}, "note in line 2", None, "a finite number"),
    ],
)
def test_a_wrong_selection_names_the_field_the_value_and_the_allowed_values(
    tmp_path: Path, changes: dict[str, Any], field: str, value: object, allowed: str
) -> None:
    data = refusal(tmp_path, **changes)
    assert (data["field"], data["value"]) == (field, value)
    assert allowed in data["allowed"]


@pytest.mark.parametrize(
    ("before", "after", "field", "value"),
    [
        ("xz,1,cold,20", "xz,1,cold,fast", "seconds in line 4", "fast"),
        ("xz,1,cold,20", "xz,1,cold,", "seconds in line 4", None),
        ("xz,1,cold,20", "xz,1,cold,nan", "seconds in line 4", "nan"),
        ("xz,1,cold,20", "xz,1,cold,inf", "seconds in line 4", "inf"),
        ("xz,1,cold,20", "xz,,cold,20", "threads in line 4", None),
        ("xz,1,cold,20", "xz,many,cold,20", "threads in line 4", "many"),
        ("xz,1,cold,20", "xz,1,20", "line 4", "5 cells"),
        ("tool,threads", "tool,tool", "column 2 of runs.csv", "tool"),
        ("tool,threads", "tool,", "column 2 of runs.csv", None),
    ],
)
def test_wrong_cell_names_column_row_and_value(
    tmp_path: Path, before: str, after: str, field: str, value: object
) -> None:
    data = refusal(tmp_path, TABLE.replace(before, after))
    assert (data["field"], data["value"]) == (field, value)


@pytest.mark.parametrize("content", [b"", b"tool,threads,seconds\n", b"\xff\xfe\x00"])
def test_invalid_tables_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        load(path, Selection(parameters=["tool"], metrics=["seconds"]))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        load(tmp_path / "none.csv", Selection(parameters=["tool"], metrics=["seconds"]))


def test_quoted_cells_over_several_lines_keep_the_count(tmp_path: Path) -> None:
    text = 'a,b\n1,"2"\n"2","x\ny"\n'
    data = refusal(tmp_path, text, parameters=["a"], metrics=["b"])
    assert data["field"] == "b in line 4"
    assert np.isfinite(read(tmp_path, 'a,b\n1,"2"\n2,3\n', parameters=["a"], metrics=["b"]).truth).all()
