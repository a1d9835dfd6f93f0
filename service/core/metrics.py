"""The bound on values of metrics. Within it neither a square nor a sum nor a product of two values overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping

from service.core.errors import InvalidInput

# Larger numbers are no measurements of a system. A configuration that does not work has no value at all.
LARGEST = 1e100
ALLOWED = f"a number from {-LARGEST:g} to {LARGEST:g}"
BEYOND = "is too large for a measurement"


def checked(field: str, value: object) -> float:
    """Return the value of a metric as a float. Raises InvalidInput, with the code `metric_too_large` beyond LARGEST."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "a finite number", problem="is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field, value, "a finite number", problem="is not finite")
    if abs(value) > LARGEST:
        allowed = f"{ALLOWED}, or report that the configuration is infeasible"
        raise InvalidInput(field, value, allowed, problem=BEYOND, code="metric_too_large", limit=LARGEST)
    return float(value)


def limited(metrics: Mapping[str, float]) -> Mapping[str, float]:
    """Return the metrics with values of at most LARGEST. Rows of earlier versions may have larger ones."""
    if all(abs(value) <= LARGEST for value in metrics.values()):
        return metrics
    return {name: min(max(value, -LARGEST), LARGEST) for name, value in metrics.items()}
