"""The run times of the jobs that matched a record: with its settings, and with the default as a control.

The agent chooses the controls at random, so both groups have the same kinds of jobs. Jobs are compared within equal
numbers of nodes, as far as three jobs of each group have that number; if that is nowhere so, all jobs are compared
together. Times are compared by their logarithms, because a gain is a ratio, with Welch's interval [welch-1947].

Users submit the jobs, choose what these do, and may ask until they are a control or not. So a job counts only if the
scheduler has confirmed it, once, and of one user the newest `MOST_OF_USER` jobs of each group. A record that is for
everybody's jobs is slower only if it is so without any one user as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from service.matching.models import Audience, Decision
from service.tenancy import access
from service.tenancy.principal import Principal

LEAST_JOBS = 3
# The jobs of one user that count with the settings, and as controls.
MOST_OF_USER = 20
_CONFIDENCE = 0.95
_GROUPS = """
WITH completed AS (
    SELECT considered.record_id, job.nodes, job."user", considered.decision, job.confirmed, job.id,
        ln(job.seconds) AS log, row_number() OVER (
            PARTITION BY considered.record_id, job.confirmed, job.cluster,
                coalesce(nullif(job.job_id, ''), job.submission) ORDER BY job.id
        ) AS report
    FROM matching_consideredrecord AS considered
    JOIN matching_reportedjob AS job ON job.id = considered.job_id AND job.tenant_id = considered.tenant_id
    JOIN matching_record AS record ON record.id = considered.record_id AND record.tenant_id = considered.tenant_id
    WHERE considered.tenant_id = %s AND considered.record_id = ANY(%s) AND considered.decision IN ('APPLIED', 'CONTROL')
        AND job."end" = 'COMPLETED' AND job.seconds > 0 AND job.submitted_at >= record.active_since
), of_users AS (
    SELECT *, row_number() OVER (PARTITION BY record_id, confirmed, "user", decision ORDER BY id DESC) AS place
    FROM completed WHERE report = 1
)
SELECT record_id, nodes, "user", decision, confirmed, count(*), avg(log), coalesce(var_samp(log), 0)
FROM of_users WHERE place <= %s OR NOT confirmed
GROUP BY record_id, nodes, "user", decision, confirmed
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

    def without(self, part: Group) -> Group:
        """Return the group of the other jobs, where `part` is some of these."""
        count = self.count - part.count
        if count <= 0:
            return NONE
        mean = self.mean + part.count * (self.mean - part.mean) / count
        squares = (self.count - 1) * self.variance - (part.count - 1) * part.variance
        squares -= part.count * count / self.count * (part.mean - mean) ** 2
        return Group(count, mean, max(0.0, squares / (count - 1)) if count > 1 else 0.0)


NONE = Group(0, 0.0, 0.0)
# By the number of nodes and the decision, the jobs of each user.
_Groups: TypeAlias = dict[tuple[int, str], dict[str, Group]]


@dataclass(frozen=True, slots=True)
class Feedback:
    """The completed jobs of a record that count, and the change of the geometric mean of their run times.

    `change` is a share of the control's run time: 0.1 is 10 % slower. The interval from `low` to `high` contains it
    with a confidence of 95 %. All three are None while a group has fewer than three jobs. `users` have submitted them.
    `least` is the lowest `low` if the jobs of any one user are left out, None where too few are left. `unconfirmed`
    other jobs count for nothing.
    """

    applied: int = 0
    control: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    users: int = 0
    least: float | None = None
    unconfirmed: int = 0

    def is_slower(self, audience: str) -> bool:
        """Return whether the settings of a record for this audience make jobs slower beyond doubt.

        The whole interval says so. If the record is for everybody, it says so also without any one user's jobs.
        """
        if self.low is None or self.low <= 0:
            return False
        return audience == Audience.USER or (self.least is not None and self.least > 0)


def of(principal: Principal, records: Sequence[int]) -> dict[int, Feedback]:
    """Return the feedback on each of these records, with one query."""
    if not records:
        return {}
    found: dict[int, _Groups] = defaultdict(lambda: defaultdict(dict))
    unconfirmed: dict[int, int] = defaultdict(int)
    rows = access.query(principal, _GROUPS, (principal.tenant_id, list(records), MOST_OF_USER))
    for record, nodes, user, decision, confirmed, count, mean, variance in rows:
        if confirmed:
            found[record][nodes, decision][user] = Group(int(count), float(mean), float(variance))
        else:
            unconfirmed[record] += int(count)
    return {record: replace(_feedback(found[record]), unconfirmed=unconfirmed[record]) for record in records}


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


def _feedback(groups: _Groups) -> Feedback:
    """Return the feedback of a record from its jobs of each number of nodes, decision and user."""
    totals = {key: Group.together(of_users.values()) for key, of_users in groups.items()}
    found = _compare(totals)
    users = {user for of_users in groups.values() for user in of_users}
    if found.low is None or len(users) < 2:
        return replace(found, users=len(users))
    others = (
        _compare({key: total.without(groups[key].get(user, NONE)) for key, total in totals.items()}).low
        for user in users
    )
    lows = [low for low in others if low is not None]
    return replace(found, users=len(users), least=min(lows) if len(lows) == len(users) else None)


def _compare(groups: Mapping[tuple[int, str], Group]) -> Feedback:
    sides = (str(Decision.APPLIED), str(Decision.CONTROL))
    numbers = dict.fromkeys(nodes for nodes, _ in groups)
    pairs = [(groups.get((one, sides[0]), NONE), groups.get((one, sides[1]), NONE)) for one in numbers]
    applied, control = (Group.together(pair[side] for pair in pairs) for side in (0, 1))
    enough = [pair for pair in pairs if _is_enough(pair)] or [pair for pair in [(applied, control)] if _is_enough(pair)]
    if not enough:
        return Feedback(applied.count, control.count)
    low, change, high = compare(enough)
    return Feedback(applied.count, control.count, change, low, high)


def _is_enough(pair: tuple[Group, Group]) -> bool:
    return all(group.count >= LEAST_JOBS for group in pair)
