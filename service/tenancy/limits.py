"""The limits of a tenant's use. The operator sets them for each tenant; the installation's limits are the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from django.conf import settings

from service.core.errors import InvalidInput

MOST = 2**62


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits. `stored_trials` includes finished trials; `log_bytes` bounds stored logs and files of all trials;
    `matching_records` includes withdrawn records."""

    studies: int
    active_trials: int
    stored_trials: int
    log_bytes: int
    suggestions_per_minute: int
    worker_seconds_per_day: int
    matching_records: int


NAMES = tuple(field.name for field in fields(Limits))


def of(own: Mapping[str, int | None]) -> Limits:
    """Return the limits of a tenant from the values that were set for it."""
    common: Mapping[str, int] = settings.TRIMTAB_LIMITS
    set_for_it = {name: own.get(name) for name in NAMES}
    return Limits(**{name: common[name] if value is None else value for name, value in set_for_it.items()})


def check(given: Mapping[str, int | None]) -> None:
    """Check names and values of limits. None means the installation's limit. Raises InvalidInput."""
    for name, value in given.items():
        if name not in NAMES:
            raise InvalidInput(f"limits.{name}", value, f"one of {', '.join(NAMES)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST):
            raise InvalidInput(
                f"limits.{name}", value, f"a whole number from 0 to {MOST}, or null for the limit of the installation"
            )
