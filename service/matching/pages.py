"""Pages of records and of reported jobs, newest first."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import QuerySet

from service.core.errors import InvalidInput
from service.studies.selectors import Page
from service.tenancy.models import TenantOwned

DEFAULT, LARGEST = 100, 500
_LARGEST_KEY = 2**63 - 1

Row = TypeVar("Row", bound=TenantOwned)


def newest_first(rows: QuerySet[Row], size: int, token: str) -> Page[Row]:
    """Return a page of rows by falling primary key. Raises InvalidInput."""
    if not 0 <= size <= LARGEST:
        raise InvalidInput("page_size", size, f"0 (the default, {DEFAULT}) to {LARGEST}")
    if token:
        last = key_of(token)
        if last is None:
            raise InvalidInput("page_token", token, "the next_page_token of the previous page")
        rows = rows.filter(pk__lt=last)
    size = size or DEFAULT
    found = list(rows.order_by("-pk")[: size + 1])
    return Page(found[:size], str(found[size - 1].pk) if len(found) > size else "")


def key_of(text: str) -> int | None:
    """Return the primary key that a text states, None if it states none."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    key = int(text)
    return key if key <= _LARGEST_KEY else None
