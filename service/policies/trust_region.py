"""The trust region of a live study: how far a candidate may be from the settings in force."""

from __future__ import annotations

from collections.abc import Sequence

from service.core.live import LiveRecord

# The factors after a kept candidate and after a broken guard, and the bounds of their product.
_KEPT, _BROKEN = 1.3, 0.6
_LEAST, _MOST = 0.05, 4.0
# The largest share of the parameters that a candidate changes at once.
SHARE = 0.6


def factor(records: Sequence[LiveRecord]) -> float:
    """Return by how much the step of a study is multiplied after these trials: more after gains, less after harm."""
    found, last = 1.0, None
    for record in records:
        if record.broken:
            found *= _BROKEN
        elif record.kept and record.candidate != last:
            # A further stage or a check of the same settings is no further gain.
            found, last = found * _KEPT, record.candidate
        found = min(max(found, _LEAST), _MOST)
    return found
