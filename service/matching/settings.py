"""Settings of the matching: the weights and the threshold, for each cluster or for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.core.errors import InvalidInput, ResourceExhausted
from service.matching import ledger
from service.matching.linkage.score import FIELDS, USUAL, Weights
from service.matching.models import MatchingSettings
from service.studies.job_metadata import LONGEST_NAME, check_text
from service.tenancy import access, audit
from service.tenancy.principal import Principal

THRESHOLD = 0.77
NIGHT = (22, 6)
MOST_CLUSTERS = 20
_LARGEST_WEIGHT = 1e6


@dataclass(frozen=True, slots=True)
class Settings:
    """The least score of a match, the weights of the fields, and the first and the last hour of the night in UTC."""

    threshold: float = THRESHOLD
    weights: Weights = USUAL
    night: tuple[int, int] = NIGHT

    def to_json(self) -> dict[str, Any]:
        """Return the form for users and the audit trail."""
        return {
            "threshold": self.threshold,
            "weights": asdict(self.weights),
            "night_from": self.night[0],
            "night_until": self.night[1],
        }


DEFAULT = Settings()


@dataclass(frozen=True, slots=True)
class Stored:
    """The settings for a cluster's jobs.

    `is_own` says whether they are stored under the cluster's own name. `clusters` are all names with settings; the
    empty one stands for all other clusters.
    """

    settings: Settings
    is_own: bool
    clusters: Sequence[str]


def every(principal: Principal) -> dict[str, Settings]:
    """Return the stored settings by the name of the cluster; the empty name stands for all other clusters."""
    return {row.cluster: _read(row) for row in access.rows(MatchingSettings, principal)}


def of_cluster(stored: Mapping[str, Settings], cluster: str) -> Settings:
    """Return the settings for a cluster's jobs: its own, the ones for all other clusters, or the default."""
    return stored.get(cluster) or stored.get("") or DEFAULT


def get(principal: Principal, cluster: str = "") -> Settings:
    """Return the settings for a cluster's jobs."""
    check_text("cluster", cluster, LONGEST_NAME)
    return of_cluster(every(principal), cluster)


def stored(principal: Principal, cluster: str = "") -> Stored:
    """Return the settings for a cluster's jobs, and which clusters have settings. Raises InvalidInput."""
    check_text("cluster", cluster, LONGEST_NAME)
    found = every(principal)
    return Stored(of_cluster(found, cluster), cluster in found, sorted(found))


def update(principal: Principal, cluster: str, settings: Settings) -> Settings:
    """Replace the settings of a cluster, or with an empty name of all clusters without their own, and return them.

    Raises ResourceExhausted (`too_many_settings`).
    """
    check_text("cluster", cluster, LONGEST_NAME)
    with access.work(principal):
        ledger.advance(principal)
        rows = access.rows(MatchingSettings, principal)
        before = rows.filter(cluster=cluster).first()
        values = settings.to_json()
        if before is None:
            if rows.count() >= MOST_CLUSTERS:
                raise ResourceExhausted(
                    "too_many_settings", f"The tenant has settings for {MOST_CLUSTERS} clusters, which is the limit."
                )
            access.add(principal, MatchingSettings(cluster=cluster, **values))
        else:
            rows.filter(pk=before.pk).update(**values)
        audit.record(
            principal,
            "matching.configure",
            f"cluster/{cluster}",
            before=None if before is None else {"settings": _read(before).to_json()},
            after={"settings": values},
        )
    return settings


def parse(threshold: object, weights: object, night_from: object, night_until: object) -> Settings:
    """Return checked settings. A weight that is left out is 0; without any, the default ones apply.

    Raises InvalidInput.
    """
    if not _is_number(threshold) or not 0 <= float(str(threshold)) <= 1:
        raise InvalidInput("threshold", threshold, "a number from 0 to 1")
    hours = []
    for name, hour in (("night_from", night_from), ("night_until", night_until)):
        if isinstance(hour, bool) or not isinstance(hour, int) or not 0 <= hour <= 23:
            raise InvalidInput(name, hour, "an hour from 0 to 23")
        hours.append(hour)
    return Settings(float(str(threshold)), _weights(weights), (hours[0], hours[1]))


def _weights(given: object) -> Weights:
    if not isinstance(given, Mapping):
        raise InvalidInput("weights", given, "an object with a weight for each field")
    if not given:
        return DEFAULT.weights
    for name, weight in given.items():
        if name not in FIELDS:
            raise InvalidInput(f"weights.{name}", weight, "the fields " + ", ".join(FIELDS))
        if not _is_number(weight) or not 0 <= weight <= _LARGEST_WEIGHT:
            raise InvalidInput(f"weights.{name}", weight, f"a number from 0 to {_LARGEST_WEIGHT:,.0f}")
    return Weights(**{name: float(given.get(name, 0.0)) for name in FIELDS})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read(row: MatchingSettings) -> Settings:
    return Settings(row.threshold, _weights(row.weights), (row.night_from, row.night_until))
