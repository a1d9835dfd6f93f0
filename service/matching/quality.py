"""How well records find their like: precision and recall at each threshold, by leaving one record out.

Each record is matched with the others of its component. A match is right if both records have the same application.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from service.matching import settings
from service.matching.book import job_of
from service.matching.linkage.index import Index
from service.matching.models import Record, State
from service.matching.settings import Settings
from service.studies.job_metadata import LONGEST_NAME, check_nodes, check_text
from service.tenancy import access
from service.tenancy.principal import Principal

MOST_RECORDS = 500
THRESHOLDS = tuple(share / 100 for share in range(50, 101))


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """The quality at one threshold.

    `precision` is the share of matches that are right, None without a match. `recall` is the share of right matches
    among the records with another record of the same application, None if there is none.
    """

    threshold: float
    matches: int
    precision: float | None
    recall: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of the matching of `records` records, `related` of which have another of the same application."""

    records: int
    related: int
    threshold: float
    thresholds: Sequence[AtThreshold]


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The score of the nearest other record, and whether it has the same application."""

    score: float
    is_right: bool


def measure(principal: Principal, *, component: str = "", cluster: str = "", cluster_nodes: int = 0) -> Quality:
    """Return the quality over the newest active records, at most 500, by the settings of a cluster.

    `component` limits it to the records of one component. `cluster_nodes` 0: as many nodes as the largest record has.
    Records without the name of an application are left out. Raises InvalidInput.
    """
    check_text("component", component, LONGEST_NAME)
    check_nodes("cluster_nodes", cluster_nodes, least=0)
    rules = settings.get(principal, cluster)
    rows = access.rows(Record, principal).filter(state=State.ACTIVE).exclude(application="")
    if component:
        rows = rows.filter(component=component)
    records = list(rows.order_by("-pk")[:MOST_RECORDS])
    nodes = cluster_nodes or max((record.nodes for record in records), default=1)
    by_component: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_component[record.component].append(record)
    found, related = [], 0
    for group in by_component.values():
        found += _nearest(group, nodes, rules)
        applications = [record.application for record in group]
        related += sum(applications.count(one) > 1 for one in applications)
    return Quality(len(records), related, rules.threshold, [_at(threshold, found, related) for threshold in THRESHOLDS])


def _nearest(records: Sequence[Record], nodes: int, rules: Settings) -> list[_Nearest]:
    index, jobs = Index(rules.weights, rules.night), {str(record.pk): job_of(record) for record in records}
    applications = {str(record.pk): record.application for record in records}
    index.load((name, job, order) for order, (name, job) in enumerate(jobs.items()))
    found = []
    for order, (name, job) in enumerate(jobs.items()):
        index.remove(name)
        other = index.nearest(job, nodes)
        index.put(name, job, order)
        if other is not None:
            found.append(_Nearest(other.score, applications[other.record] == applications[name]))
    return found


def _at(threshold: float, found: Sequence[_Nearest], related: int) -> AtThreshold:
    matches = [one for one in found if one.score >= threshold]
    right = sum(one.is_right for one in matches)
    return AtThreshold(
        threshold, len(matches), right / len(matches) if matches else None, right / related if related else None
    )
