"""The quality of the matching on a tenant's own records, and the weights that they teach.

Each record is matched with the others. A match is right if both have the same component and application.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from service.core.errors import InvalidInput
from service.matching import settings
from service.matching.book import job_of
from service.matching.linkage import learning
from service.matching.linkage.features import features
from service.matching.linkage.learning import THRESHOLDS, Labelled, Learned, Quality
from service.matching.models import Record, State
from service.matching.settings import Settings
from service.platform.lru_cache import LruCache
from service.studies.job_metadata import LONGEST_NAME, check_nodes, check_text
from service.tenancy import access
from service.tenancy.principal import Principal

MOST_RECORDS = 500
# What the commands of these records may have together: characters, parts of paths and values of options, and different
# parts of paths, each of which is compared with all others. Commands of 500 usual records have a third of this.
MOST_CHARACTERS = 500_000
MOST_PARTS = 20_000
MOST_DIFFERENT = 1_500
_REMEMBERED = 100

_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The quality at each threshold for `records` records, `related` of which have another of the same application.

    `pairs` are the pairs of records of the same application, and `learnable` the applications with enough records to
    learn weights from. `threshold` is the present one. `learned`: None if it was not asked for, or the records are too
    few.
    """

    records: int
    related: int
    pairs: int
    learnable: int
    threshold: float
    qualities: Sequence[Quality]
    learned: Learned | None


def measure(
    principal: Principal, *, component: str = "", cluster: str = "", cluster_nodes: int = 0, learn: bool = False
) -> Report:
    """Return the quality over the newest active records, at most 500 and fewer if their commands are very long, by the
    settings of a cluster. It is remembered until the records or the settings change.

    `component` limits it to the records of one component. `cluster_nodes` 0: as many nodes as the largest record has.
    Records without the name of an application are left out. With `learn`, weights are learned from one half of the
    records, and their quality is the one on the other half. Raises InvalidInput.
    """
    check_text("component", component, LONGEST_NAME)
    check_nodes("cluster_nodes", cluster_nodes, least=0)
    rules = settings.get(principal, cluster)
    rows = access.rows(Record, principal).filter(state=State.ACTIVE).exclude(application="")
    if component:
        rows = rows.filter(component=component)
    records = _bounded(rows.order_by("-pk")[:MOST_RECORDS])
    nodes = cluster_nodes or max((record.nodes for record in records), default=1)
    versions = tuple((record.pk, record.revision) for record in records)
    key = (principal.tenant_id, versions, nodes, rules, learn)
    report = _reports.get(key)
    if report is None:
        report = _report(records, nodes, rules, learn=learn)
        _reports.put(key, report)
    return report


_reports: LruCache[_Key, Report] = LruCache(_REMEMBERED)


def _bounded(records: Iterable[Record]) -> list[Record]:
    """Return the first records whose command lines have at most MOST_CHARACTERS together."""
    sizes = accumulate(len(record.command_line) for record in records)
    return [record for record, size in zip(records, sizes, strict=True) if size <= MOST_CHARACTERS]


def _labelled(records: Iterable[Record]) -> list[Labelled]:
    """Return the first records, as many as MOST_PARTS and MOST_DIFFERENT allow."""
    found: list[Labelled] = []
    parts, different = 0, set[str]()
    for record in records:
        compared = features(job_of(record))
        parts += len(compared.tokens) + sum(max(len(values), 1) for _, values in compared.options)
        different.update(compared.tokens)
        if parts > MOST_PARTS or len(different) > MOST_DIFFERENT:
            break
        # The application's name is its component's own. No component's name has a line break.
        found.append(Labelled(compared, f"{record.component}\n{record.application}"))
    return found


def _report(records: Sequence[Record], nodes: int, rules: Settings, *, learn: bool) -> Report:
    labelled = _labelled(records)
    counts = Counter(one.label for one in labelled)
    return Report(
        records=len(labelled),
        related=sum(count for count in counts.values() if count > 1),
        pairs=sum(math.comb(count, 2) for count in counts.values()),
        learnable=sum(count >= learning.LEAST_RECORDS for count in counts.values()),
        threshold=rules.threshold,
        qualities=learning.precision_recall(labelled, THRESHOLDS, nodes, rules.weights, rules.night),
        learned=_learned(labelled, nodes, rules.night) if learn else None,
    )


def _learned(labelled: Sequence[Labelled], nodes: int, night: tuple[int, int]) -> Learned | None:
    try:
        return learning.learn(labelled, nodes, night)
    except InvalidInput:
        # There are too few records of an application, or of different ones.
        return None
