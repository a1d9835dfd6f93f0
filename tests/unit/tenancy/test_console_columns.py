"""The columns that the console offers for conditions are those that the service knows."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.matching import jobs, records
from service.notices import channels, notices
from service.studies import selectors
from service.tenancy import audit
from service.tenancy.conditions import Column

LISTS: Mapping[str, Mapping[str, Column]] = {
    "STUDY_COLUMNS": selectors.COLUMNS,
    "AUDIT_COLUMNS": audit.COLUMNS,
    "RECORD_COLUMNS": records.COLUMNS,
    "JOB_COLUMNS": jobs.COLUMNS,
    "NOTICE_COLUMNS": notices.COLUMNS,
    "DELIVERY_COLUMNS": channels.COLUMNS,
}
FILE = Path(__file__).resolve().parents[3] / "web/src/lib/columns.ts"
OFFERED = {name: json.loads(names) for name, names in re.findall(r"const (\w+) = (\[.*?\]);", FILE.read_text(), re.S)}


def test_the_console_names_no_other_lists() -> None:
    assert OFFERED.keys() == LISTS.keys()


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_the_columns_that_the_console_offers(name: str) -> None:
    assert sorted(OFFERED[name]) == sorted(LISTS[name])
