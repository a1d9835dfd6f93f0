"""The limits of a tenant's use. The operator sets them for each tenant; the installation's limits are the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from django.conf import settings

from service.core.errors import InvalidInput

MOST = 2**62


@dataclass(frozen=True, slots=True)
class Limits:
    """`stored_trials` counts finished ones as well, `log_bytes` what is kept of all trials' logs and files."""

    studies: int
    active_trials: int
    stored_trials: int
    log_bytes: int
    suggestions_per_minute: int
    worker_seconds_per_day: int


NAMES = tuple(field.name for field in fields(Limits))


def of(own: Mapping[str, int | None]) -> Limits:
    """A tenant's limits, from those that were set for it."""
    common: Mapping[str, int] = settings.TRIMTAB_LIMITS
    set_for_it = {name: own.get(name) for name in NAMES}
    return Limits(**{name: common[name] if value is None else value for name, value in set_for_it.items()})


def check(given: Mapping[str, int | None]) -> None:
    """Raises InvalidInput where a limit is none or has no possible value; None stands for the installation's."""
    for name, value in given.items():
        if name not in NAMES:
            raise InvalidInput(f"limits.{name}", value, f"one of {', '.join(NAMES)}")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST):
            raise InvalidInput(
                f"limits.{name}", value, f"a whole number from 0 to {MOST}, or null for the limit of the installation"
            )
