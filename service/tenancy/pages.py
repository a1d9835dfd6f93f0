"""Pages of lists. A page begins after a key, so that page 1,000 costs as much as page 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Q, QuerySet

from service.core.errors import InvalidInput
from service.tenancy.models import TenantOwned

DEFAULT, LARGEST = 100, 1000
_LARGEST_KEY = 2**63 - 1

Item = TypeVar("Item")
Row = TypeVar("Row", bound=TenantOwned)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list. The token of the last page is empty. `total_count` is -1 if it was not counted."""

    items: list[Item]
    next_page_token: str
    total_count: int = -1


def page(rows: QuerySet[Row], order: str, size: int, token: str, *, largest: int = LARGEST) -> Page[Row]:
    """Return a page of rows in the order of a field in which each has another number; "-" before it: descending.

    Raises InvalidInput (`page_size`, `page_token`).
    """
    size, field = check_size(size, largest), order.removeprefix("-")
    if token:
        last = key_of(token)
        if last is None:
            raise _bad_token(token)
        rows = rows.filter(**{f"{field}__gt" if order == field else f"{field}__lt": last})
    found = list(rows.order_by(order)[: size + 1])
    return Page(found[:size], str(getattr(found[size - 1], field)) if len(found) > size else "")


def by_column(
    rows: QuerySet[Row], every: QuerySet[Row], column: str, size: int, token: str, *, down: bool, largest: int = LARGEST
) -> Page[Row]:
    """Return a page of rows in the order of a column without nulls, among equal values the newest first.

    `every` has the tenant's rows without a filter: the last row of the previous page may no longer pass the filter.

    Raises InvalidInput (`page_size`, `page_token`).
    """
    size = check_size(size, largest)
    if token:
        last = key_of(token)
        value = None if last is None else every.filter(pk=last).values_list(column, flat=True).first()
        if value is None:
            raise _bad_token(token)
        beyond = Q(**{f"{column}__{'lt' if down else 'gt'}": value})
        rows = rows.filter(beyond | Q(**{column: value, "pk__lt": last}))
    found = list(rows.order_by(f"-{column}" if down else column, "-pk")[: size + 1])
    return Page(found[:size], str(found[size - 1].pk) if len(found) > size else "")


def _bad_token(token: str) -> InvalidInput:
    return InvalidInput("page_token", token, "the next_page_token of the previous page, with the same order")


def check_size(size: int, largest: int = LARGEST) -> int:
    """Return the size of a page; 0 means the default. Raises InvalidInput."""
    if not 0 <= size <= largest:
        raise InvalidInput("page_size", size, f"0 (the default, {DEFAULT}) to {largest}")
    return size or DEFAULT


def key_of(text: str) -> int | None:
    """Return the key that a text states, None if it states none."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    key = int(text)
    return key if key <= _LARGEST_KEY else None
