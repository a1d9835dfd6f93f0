"""The records of an index as columns of codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from service.matching.linkage import moments
from service.matching.linkage.codes import Codes
from service.matching.linkage.features import Features
from service.matching.linkage.names import Names
from service.matching.linkage.option_sets import OptionSets
from service.matching.linkage.paths import Paths
from service.matching.linkage.ragged import doubled

# The rows of the array of codes.
USER, NAME, PROGRAM, PATH, OPTIONS, WITHIN, WEEK, DAY, NODES = range(9)

# The user of a removed record.
REMOVED = -1

# Values that no record has are kept up to this number, so that a small index is not compacted all the time.
_ALWAYS_KEPT = 1024


class Store:
    """Records, and the distinct values of their fields.

    A record is a column of `codes`: small integers in place of values that records share. Columns of removed records
    are used again. `rows` has the number of the column for each record. One thread at a time may use it.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.records: list[str] = []
        self._free: list[int] = []
        self.users: Codes[str] = Codes()
        self.names = Names()
        self.programs = Names()
        self.paths = Paths()
        self.options = OptionSets()
        self.nodes: Codes[int] = Codes()
        self.codes: npt.NDArray[np.int32] = np.zeros((9, 64), np.int32)
        self.orders = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def values(self) -> dict[int, Codes[Any]]:
        """Return the distinct values of the fields whose values are not known beforehand."""
        return {
            USER: self.users,
            NAME: self.names,
            PROGRAM: self.programs,
            PATH: self.paths,
            OPTIONS: self.options,
            NODES: self.nodes,
        }

    def column(self, field: int) -> npt.NDArray[np.int32]:
        """Return the codes of a field for all rows, also removed ones."""
        return self.codes[field, : len(self.records)]

    def put(self, items: Mapping[str, tuple[Features, int]]) -> None:
        """Add or replace records, each with its features and order.

        Many at once cost about half as much for each, because arrays are written for all of them together.
        """
        codes = np.array([self._encoded(job) for job, _ in items.values()], np.int32).T
        orders = np.array([order for _, order in items.values()], np.int64)
        rows = []
        for record in items:
            self.remove(record)
            if self._free:
                row = self._free.pop()
                self.records[row] = record
            else:
                row = len(self.records)
                self.records.append(record)
            self.rows[record] = row
            rows.append(row)
        if len(self.records) > len(self.orders):
            least = len(self.records)
            self.codes, self.orders = doubled(self.codes, least), doubled(self.orders, least)
        self.codes[:, rows] = codes
        self.orders[rows] = orders
        self.paths.count(codes[PATH], 1)

    def remove(self, record: str) -> None:
        """Remove a record; an unknown one has no effect."""
        row = self.rows.pop(record, None)
        if row is not None:
            self.paths.count(self.codes[PATH, [row]], -1)
            self.codes[USER, row] = REMOVED
            self._free.append(row)

    def compacted(self) -> Store:
        """Return this store, or a copy without the values that no record has if these are more than half of a field's.

        Replaced and removed records leave them. A copy costs time in proportion to the number of records, and there
        have been more changes than records since the last one.
        """
        old = self.values()
        if max(map(len, old.values())) <= 2 * len(self) + _ALWAYS_KEPT:
            return self
        live = list(self.rows.values())
        new = Store()
        new.records = list(self.rows)
        new.rows = {record: row for row, record in enumerate(new.records)}
        new.codes, new.orders = self.codes[:, live], self.orders[live]
        for field, values in new.values().items():
            distinct, places = np.unique(new.codes[field], return_inverse=True)
            codes = [values.add(old[field].values[code]) for code in distinct.tolist()]
            new.codes[field] = np.array(codes, np.int32)[places]
        new.paths.count(new.codes[PATH], 1)
        return new

    def _encoded(self, job: Features) -> tuple[int, ...]:
        return (
            self.users.add(job.user),
            self.names.add(job.name),
            self.programs.add(job.program),
            self.paths.add(job.tokens),
            self.options.add(job.options),
            *moments.codes(job.moment),
            self.nodes.add(job.nodes),
        )
