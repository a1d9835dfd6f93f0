"""The books of the tenants that a process matches jobs for. It forgets tenants beyond its bound of records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from django.conf import settings

from service.core.errors import InvalidInput
from service.matching import submission
from service.matching.book import Book, Match
from service.matching.submission import Submission
from service.studies.job_metadata import check_text
from service.tenancy.principal import Principal

MOST_COMPONENTS = 32
_LONGEST_COMPONENT = 200


class Books:
    """Books by tenant. They hold at most `most` records together; the tenant that was used longest ago is dropped.

    The book in use always stays, so a tenant with more records than that is matched, too.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._books: OrderedDict[int, Book] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._books)

    def of(self, tenant_id: int) -> Book:
        """Return the book of a tenant, a new one if it has none."""
        with self._lock:
            book = self._books.setdefault(tenant_id, Book())
            self._books.move_to_end(tenant_id)
            return book

    def refreshed(self, principal: Principal) -> Book:
        """Return the tenant's book with all changes that were committed before this call."""
        book = self.of(principal.tenant_id)
        book.refresh(principal)
        self._bound()
        return book

    def _bound(self) -> None:
        most = settings.TRIMTAB_MATCHING_INDEXED if self._most is None else self._most
        with self._lock:
            # Each tenant counts one more, so that tenants without records are bounded, too.
            total = sum(len(book) + 1 for book in self._books.values())
            while total > most and len(self._books) > 1:
                _, dropped = self._books.popitem(last=False)
                total -= len(dropped) + 1


def check(submitted: Submission, components: Sequence[str]) -> None:
    """Refuse a job or components out of bounds. Raises InvalidInput."""
    submission.check("job", submitted)
    if len(components) > MOST_COMPONENTS:
        raise InvalidInput("components", f"{len(components)} components", f"at most {MOST_COMPONENTS}")
    for index, component in enumerate(components):
        check_text(f"components[{index}]", component, _LONGEST_COMPONENT, required=True)


def match(
    principal: Principal, submitted: Submission, components: Sequence[str] = (), *, explain: bool = False
) -> list[Match]:
    """Return the nearest record of each component (none: all), highest score first.

    It reads from the database what has changed. With `explain`, also records below the threshold. Raises InvalidInput.
    """
    check(submitted, components)
    return books.refreshed(principal).match(submitted, components, explain=explain)


books = Books()
