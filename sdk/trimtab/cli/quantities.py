"""Values of metrics with their units."""

import math
from decimal import ROUND_HALF_UP, Context

from trimtab.objective import Objective

_SECONDS = ("s", "sec", "second", "seconds")
_SMALLER = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def quantity(value: float, objective: Objective) -> str:
    """Return a value with its unit as the console shows it (`formatMetric`): less than a second in ms, µs or ns."""
    unit = objective.unit or ("s" if objective.metric in _SECONDS else "")
    if unit in _SECONDS:
        scale, unit = next((one for one in _SMALLER if abs(value) >= one[0]), _SMALLER[0])
        value /= scale
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    """Return a value with four digits, and never fewer than left of the point.

    A tie is rounded away from zero as in the console: 60.805 is 60.81, although its binary value is below the tie.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(4, min(math.floor(math.log10(abs(value))) + 1, 9))
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(repr(value))
    return f"{float(rounded):.{digits}g}"
