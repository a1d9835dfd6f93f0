"""The prospects of a study: probabilities that its system can be made better by a certain share."""

from __future__ import annotations

from dataclasses import dataclass

# Shares of the default's value.
GAINS = (0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class Prospect:
    """The `probability` that some configuration is better than the default by at least `gain`, a share of its value."""

    gain: float
    probability: float
