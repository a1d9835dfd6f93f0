"""The run times of the jobs that matched a record: with its settings, and with the default as a control.

The agent chooses the controls at random, so both groups have the same kinds of jobs. Jobs are compared within equal
numbers of nodes, as far as three jobs of each group have that number; if that is nowhere so, all jobs are compared
together. Times are compared by their logarithms, because a gain is a ratio, with Welch's interval [welch-1947].
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.matching.models import Decision
from service.tenancy import access
from service.tenancy.principal import Principal

LEAST_JOBS = 3
_CONFIDENCE = 0.95
_GROUPS = """
SELECT considered.record_id, job.nodes, considered.decision, count(*), avg(ln(job.seconds)),
    coalesce(var_samp(ln(job.seconds)), 0)
FROM matching_consideredrecord AS considered
JOIN matching_reportedjob AS job ON job.id = considered.job_id AND job.tenant_id = considered.tenant_id
JOIN matching_record AS record ON record.id = considered.record_id AND record.tenant_id = considered.tenant_id
WHERE considered.tenant_id = %s AND considered.record_id = ANY(%s) AND considered.decision IN ('APPLIED', 'CONTROL')
    AND job."end" = 'COMPLETED' AND job.seconds > 0 AND job.submitted_at >= record.active_since
GROUP BY considered.record_id, job.nodes, considered.decision
"""


@dataclass(frozen=True, slots=True)
class Group:
    """The natural logarithms of the run times, in seconds, of `count` jobs: their mean and variance."""

    count: int
    mean: float
    variance: float

    @classmethod
    def together(cls, groups: Iterable[Group]) -> Group:
        """Return one group with the jobs of all."""
        found = [group for group in groups if group.count]
        count = sum(group.count for group in found)
        if not count:
            return NONE
        mean = math.fsum(group.count * group.mean for group in found) / count
        squares = math.fsum((g.count - 1) * g.variance + g.count * (g.mean - mean) ** 2 for g in found)
        return cls(count, mean, squares / (count - 1) if count > 1 else 0.0)


NONE = Group(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Feedback:
    """The completed jobs of a record, and the change of the geometric mean of their run times.

    `change` is a share of the control's run time: 0.1 is 10 % slower. The interval from `low` to `high` contains it
    with a confidence of 95 %. All three are None while a group has fewer than three jobs.
    """

    applied: int = 0
    control: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_slower(self) -> bool:
        """Return whether the whole interval says that the settings make jobs slower."""
        return self.low is not None and self.low > 0


def of(principal: Principal, records: Sequence[int]) -> dict[int, Feedback]:
    """Return the feedback on each of these records, with one query."""
    if not records:
        return {}
    found: dict[int, dict[int, dict[str, Group]]] = defaultdict(lambda: defaultdict(dict))
    rows = access.query(principal, _GROUPS, (principal.tenant_id, list(records)))
    for record, nodes, decision, count, mean, variance in rows:
        found[record][nodes][decision] = Group(int(count), float(mean), float(variance))
    return {record: _compare(found[record].values()) for record in records}


def compare(pairs: Sequence[tuple[Group, Group]]) -> tuple[float, float, float]:
    """Return the change from the second group of each pair to the first, and the interval, as shares.

    Pairs are weighted by their harmonic number of jobs. The degrees of freedom are Welch's.
    """
    # It is imported on first use, because most processes never need it.
    from scipy.special import stdtrit

    weights = [1 / (1 / one.count + 1 / other.count) for one, other in pairs]
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    change = math.fsum(share * (one.mean - other.mean) for share, (one, other) in zip(shares, pairs, strict=True))
    terms = [
        (share**2 * side.variance / side.count, side.count - 1)
        for share, pair in zip(shares, pairs, strict=True)
        for side in pair
    ]
    variance = math.fsum(term for term, _ in terms)
    if variance == 0:
        reach = 0.0
    else:
        freedom = variance**2 / math.fsum(term**2 / free for term, free in terms)
        reach = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2)) * math.sqrt(variance)
    low, middle, high = (math.expm1(value) for value in (change - reach, change, change + reach))
    return low, middle, high


def _compare(by_nodes: Iterable[dict[str, Group]]) -> Feedback:
    pairs = [(groups.get(Decision.APPLIED, NONE), groups.get(Decision.CONTROL, NONE)) for groups in by_nodes]
    applied, control = (Group.together(pair[side] for pair in pairs) for side in (0, 1))
    enough = [pair for pair in pairs if _is_enough(pair)] or [pair for pair in [(applied, control)] if _is_enough(pair)]
    if not enough:
        return Feedback(applied.count, control.count)
    low, change, high = compare(enough)
    return Feedback(applied.count, control.count, change, low, high)


def _is_enough(pair: tuple[Group, Group]) -> bool:
    return all(group.count >= LEAST_JOBS for group in pair)
