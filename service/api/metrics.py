"""Prometheus metrics of the web process, and totals of the whole service from the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from service.api import errors
from service.core.lifecycle import StudyState
from service.platform.remembered import Remembered
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.trials import presence

# How old the answer may be. Prometheus asks every 15 s.
REMEMBERED_SECONDS = 1.0
REQUEST_SECONDS = Histogram(
    "trimtab_http_request_seconds",
    "Time from the arrival of a REST request to its rendered answer.",
    ["method", "route", "status"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


class Census(Collector):
    """Totals from the database, counted when Prometheus reads them.

    This reads one row for each study and agent. It never reads trials, since studies have counters of them.
    """

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield nothing, so that registering the collector makes no query."""
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        studies = GaugeMetricFamily("trimtab_studies", "Studies by state.", labels=["state"])
        trials = GaugeMetricFamily("trimtab_trials", "Trials by state; finished for all final ones.", labels=["state"])
        totals = dict.fromkeys(("requested", "active", "finished"), 0)
        by_state = {state: (count, found) for state, count, *found in access.across("count_studies")}
        for state in StudyState:
            count, found = by_state.get(state, (0, (0, 0, 0)))
            studies.add_metric([state.lower()], count)
            for name, number in zip(totals, found, strict=True):
                totals[name] += number
        for name, total in totals.items():
            trials.add_metric([name], total)
        yield studies
        yield trials
        yield self._operations()
        yield self._agents()
        yield self._workers()
        yield GaugeMetricFamily(
            "trimtab_oldest_operation_seconds",
            "Time for which the oldest suggestion has waited.",
            presence.oldest_seconds(),
        )

    def _operations(self) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily("trimtab_operations", "Suggestions not yet computed, by state.", labels=["state"])
        counted = dict(access.across("count_operations"))
        for state in UNFINISHED:
            gauge.add_metric([state.lower()], counted.get(state, 0))
        return gauge

    def _workers(self) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily("trimtab_workers", "Workers that are alive, by state.", labels=["state"])
        alive = presence.workers()
        gauge.add_metric(["busy"], sum(worker.busy for worker in alive))
        gauge.add_metric(["idle"], sum(not worker.busy for worker in alive))
        return gauge

    def _agents(self) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily("trimtab_agents", "Agents, online (a recent heartbeat) or offline.", labels=["state"])
        silence = timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)
        ((online, offline),) = access.across("count_agents", silence)
        gauge.add_metric(["online"], online)
        gauge.add_metric(["offline"], offline)
        return gauge


REGISTRY.register(Census())


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus. The metrics contain only numbers, so no token is needed."""
    found = _latest.get()
    if isinstance(found, DatabaseError):
        return errors.respond(found)
    return HttpResponse(found, content_type=CONTENT_TYPE_LATEST)


def _generate() -> bytes | DatabaseError:
    try:
        return generate_latest(REGISTRY)
    except DatabaseError as error:
        # It is remembered, too: those who wait would otherwise try one after the other.
        return error


# Anybody may ask as often as they please.
_latest = Remembered(_generate, REMEMBERED_SECONDS)
