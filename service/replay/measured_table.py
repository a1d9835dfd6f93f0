"""A table of exhaustive measurements as a subject of replays.

One row is one measurement, and rows with the same parameters are replicates of one configuration. A run is one of the
replicates, drawn at random [robert-2021, section 5.5.2, "Loop simulation"], and the true value is their mean or median.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from service.core.encoding import FloatArray
from service.core.errors import InvalidInput, shorten
from service.core.parameters import identity
from service.core.problem import Objective, Problem
from service.core.space import (
    CategoricalParameter,
    Condition,
    Configuration,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)
from service.replay.subject import Measurement, Subject, grid_number

TRUTHS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "mean": lambda values: np.mean(values, axis=0),
    "median": lambda values: np.median(values, axis=0),
}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The meaning of a table's columns.

    `metrics`: a column, `column:min` or `column:max`; `maximize` applies to columns without a direction. `conditional`:
    parameters whose cells are empty if the value of another parameter makes them inactive. `seconds`: the column with a
    run's own time. `default`: the untuned configuration.
    """

    parameters: Sequence[str]
    metrics: Sequence[str]
    maximize: bool = False
    categorical: Sequence[str] = ()
    conditional: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    seconds: str | None = None
    default: Mapping[str, str] = field(default_factory=dict)
    truth: str = "mean"


@dataclass(frozen=True, slots=True)
class _Cell:
    column: str
    place: str
    value: object

    @property
    def name(self) -> str:
        return f"{self.column} in {self.place}"

    def number(self) -> float:
        """Return the cell as a number. Raises InvalidInput if it is not a finite number."""
        number = _number(self.value)
        if number is None:
            raise InvalidInput(self.name, _present(self.value), "a finite number")
        return number


_Row = Mapping[str, _Cell]


@dataclass(frozen=True)
class Replicates:
    """Runs that are drawn from the measured ones: for each row, [replicates, m] values and their seconds."""

    values: tuple[FloatArray, ...]
    seconds: tuple[FloatArray, ...] | None

    def measure(self, row: int, clock: float, rng: np.random.Generator, seed: int) -> Measurement:
        drawn = int(rng.integers(len(self.values[row])))
        return Measurement(self.values[row][drawn], None if self.seconds is None else float(self.seconds[row][drawn]))


def load(path: Path, selection: Selection) -> Subject:
    """Return the subject of a CSV or Parquet file; CSV may be compressed by gzip.

    Raises:
        InvalidInput: the file cannot be read, a column does not exist, or a cell is missing or not a number. The
            message has the column, the row, the value and the allowed values.
    """
    columns, rows = _read(path)
    return _subject(path.name.removesuffix(".gz").rpartition(".")[0], columns, rows, selection)


def _subject(name: str, columns: Sequence[str], rows: Sequence[_Row], selection: Selection) -> Subject:
    if selection.truth not in TRUTHS:
        raise InvalidInput("truth", selection.truth, "one of " + ", ".join(TRUTHS))
    objectives = [_objective(text, columns, selection.maximize) for text in selection.metrics]
    for option, given in {"parameters": selection.parameters, "metric": selection.metrics}.items():
        if not given:
            raise InvalidInput(option, None, "columns of the table: " + shorten(", ".join(columns), 500))
    wanted = {
        "parameters": selection.parameters,
        "categorical": selection.categorical,
        "conditional": selection.conditional,
        "where": tuple(selection.where),
        "seconds": () if selection.seconds is None else (selection.seconds,),
    }
    for option, names in wanted.items():
        for column in names:
            if column not in columns:
                raise InvalidInput(option, column, "columns of the table: " + shorten(", ".join(columns), 500))
    for option, names in {"categorical": selection.categorical, "conditional": selection.conditional}.items():
        for column in names:
            if column not in selection.parameters:
                raise InvalidInput(option, column, "some of the parameters: " + ", ".join(selection.parameters))
    for column in (*(one.metric for one in objectives), *wanted["seconds"]):
        if column in selection.parameters:
            raise InvalidInput("metric", column, "a column that is not a parameter")
    rows = _where(rows, selection.where)
    parameters = [_parameter(column, [row[column] for row in rows], selection) for column in selection.parameters]
    parameters = [_conditioned(one, rows, selection) for one in parameters]
    space = Space.build(parameters)
    groups: dict[str, tuple[Configuration, list[_Row]]] = {}
    for row in rows:
        configuration = _configuration(space, row)
        groups.setdefault(space.key(configuration), (configuration, []))[1].append(row)
    values = tuple(
        np.array([[row[one.metric].number() for one in objectives] for row in group]) for _, group in groups.values()
    )
    seconds = None
    if selection.seconds is not None:
        seconds = tuple(np.array([row[selection.seconds].number() for row in group]) for _, group in groups.values())
    truth = np.array([TRUTHS[selection.truth](group) for group in values])
    rows_of = {grid_number(space, configuration): row for row, (configuration, _) in enumerate(groups.values())}
    default = _default(space, rows_of, selection.default)
    return Subject(
        name=name,
        problem=Problem.build(space, objectives, noisy=any(len(np.unique(group, axis=0)) > 1 for group in values)),
        truth=truth,
        answers=Replicates(values, seconds),
        rows=rows_of,
        default=None if default is None else truth[default],
    )


def _objective(text: str, columns: Sequence[str], maximize: bool) -> Objective:
    column, _, way = text.rpartition(":")
    if text in columns or way not in ("min", "max"):
        column, way = text, "max" if maximize else "min"
    if column not in columns:
        raise InvalidInput("metric", column, "columns of the table: " + shorten(", ".join(columns), 500))
    return Objective.from_json({"metric": column, "goal": f"{way}imize"}, "metric")


def _where(rows: Sequence[_Row], where: Mapping[str, str]) -> list[_Row]:
    """Return the rows with these values. Raises InvalidInput if none is left."""
    left = list(rows)
    for column, wanted in where.items():
        number = _number(wanted)
        known = dict.fromkeys(str(row[column].value) for row in left)
        left = [
            row
            for row in left
            if str(row[column].value) == wanted or (number is not None and _number(row[column].value) == number)
        ]
        if not left:
            raise InvalidInput(f"where.{column}", wanted, "one of " + shorten(", ".join(known), 500))
    if not left:
        raise InvalidInput("table", "no rows", "at least one measurement")
    return left


def _parameter(column: str, cells: Sequence[_Cell], selection: Selection) -> Parameter:
    given = [cell for cell in cells if _present(cell.value) is not None]
    if len(given) < len(cells) and column not in selection.conditional:
        missing = next(cell for cell in cells if _present(cell.value) is None)
        raise InvalidInput(
            missing.name, None, "a value in every row, or name the column conditional if it is inactive in some rows"
        )
    if not given:
        raise InvalidInput(column, "empty", "a value in some row")
    texts = [cell for cell in given if _number(cell.value) is None]
    if column in selection.categorical or len(texts) == len(given):
        values = {identity(_plain(cell.value)): _plain(cell.value) for cell in given}
        ordered = sorted(values.values(), key=lambda value: (isinstance(value, str), value))
        return CategoricalParameter(column, tuple(ordered))
    if texts:
        raise InvalidInput(texts[0].name, texts[0].value, "a number as in other rows, or name the column categorical")
    return OrdinalParameter(column, tuple(sorted({_plain(cell.value) for cell in given}, key=float)))


def _conditioned(parameter: Parameter, rows: Sequence[_Row], selection: Selection) -> Parameter:
    """Return the parameter with the condition that explains its empty cells. Raises InvalidInput if there is none."""
    name = parameter.name
    if name not in selection.conditional:
        return parameter
    for parent in selection.parameters:
        if parent == name or parent in selection.conditional:
            continue
        active = {_plain(row[parent].value) for row in rows if _present(row[name].value) is not None}
        inactive = {_plain(row[parent].value) for row in rows if _present(row[name].value) is None}
        if inactive and not active & inactive:
            condition = Condition(parent, tuple(sorted(active, key=lambda value: (isinstance(value, str), value))))
            return replace(parameter, condition=condition)
    raise InvalidInput("conditional", name, "a parameter that is empty exactly when another one has certain values")


def _configuration(space: Space, row: _Row) -> Configuration:
    given = {name: _plain(row[name].value) for name in space.names() if _present(row[name].value) is not None}
    return space.validate(given)


def _default(space: Space, rows: Mapping[int, int], given: Mapping[str, str]) -> int | None:
    if not given:
        return None
    configuration = space.validate({name: _plain(text) for name, text in given.items()}, "default")
    row = rows.get(grid_number(space, configuration))
    if row is None:
        shown = ", ".join(f"{name}={value}" for name, value in configuration.items())
        raise InvalidInput("default", shown, "a configuration of the table")
    return row


def _read(path: Path) -> tuple[list[str], list[_Row]]:
    """Return the names of the columns and the rows. Raises InvalidInput."""
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path)
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rt", newline="", encoding="utf-8-sig") as file:
                return _csv(file, path)
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _csv(file, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput("table", str(path), f"a complete file that was compressed by gzip ({error})") from error
    except OSError as error:
        raise InvalidInput("table", str(path), f"a file that can be read ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("table", str(path), f"CSV in UTF-8 ({error})") from error


def _csv(lines: Iterator[str], path: Path) -> tuple[list[str], list[_Row]]:
    reader = csv.reader(lines)
    columns = next(reader, [])
    for index, column in enumerate(columns):
        if not column or column in columns[:index]:
            raise InvalidInput(f"column {index + 1} of {path.name}", column or None, "a name that no other column has")
    rows: list[_Row] = []
    for cells in reader:
        place = f"line {reader.line_num}"
        if not cells:
            continue  # The line is empty.
        if len(cells) != len(columns):
            raise InvalidInput(place, f"{len(cells)} cells", f"{len(columns)} cells, one for each column")
        rows.append({name: _Cell(name, place, cell) for name, cell in zip(columns, cells, strict=True)})
    return columns, rows


def _parquet(path: Path) -> tuple[list[str], list[_Row]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InvalidInput(
            "table", str(path), "a CSV file; for Parquet, install pyarrow: pip install pyarrow"
        ) from error
    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise InvalidInput("table", str(path), f"a Parquet file ({shorten(str(error), 200)})") from error
    names = [str(name) for name in table.column_names]
    found = table.to_pylist()
    return names, [
        {name: _Cell(name, f"row {place}", row[name]) for name in names} for place, row in enumerate(found, start=1)
    ]


def _present(value: object) -> object | None:
    """Return the cell's value; None if it is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: object) -> float | None:
    """Return the cell as a finite number; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _plain(value: object) -> Scalar:
    """Return a cell as a parameter's value: an integer if it is whole, a number, or a text."""
    number = _number(value)
    if number is None:
        return value if isinstance(value, bool) else str(value).strip()
    return int(number) if number == math.floor(number) else number
