"""The rules of a live study and what its trials have shown so far, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.core.live_results import LiveOutcome
from service.core.windows import Window
from service.live.results import LEAST_BROKEN
from service.studies import selectors
from service.studies.change import read
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal

_MOST_OUTCOMES = 30


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """A change window: the texts of the study file, and when it opens or closes next.

    `name` is window or restart_window. `opens_at` is None while it is open, and `closes_at` while it is closed.
    """

    name: str
    days: str
    hours: str
    zone: str
    opens_at: datetime | None
    left: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a live trial. `effect`, `low` and `high` are logarithms of the objective's ratio to the incumbent."""

    trial: int
    state: str
    decision: str
    effect: float | None
    low: float | None
    high: float | None
    pairs: int
    kept: bool
    guard: str
    reason: str
    reason_data: Mapping[str, Any] | None
    ended_at: datetime | None
    changes: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Details:
    """The rules of a live study and its latest outcomes, the newest first.

    `approve` is as in a study file. A study is frozen after at least `least_broken` trials with a broken guard, if they
    are more than the share `freeze` of all.
    """

    component: str
    application: str
    metric: str
    goal: str
    min_gain: float
    most_pairs: int
    approve: Mapping[str, Any]
    freeze: float
    least_broken: int
    windows: Sequence[WindowStatus]
    outcomes: Sequence[Outcome]


def details(principal: Principal, name: str) -> Details:
    """Return the rules and outcomes of a live study, which `live.status` has found before."""
    found = read(principal, selectors.get_study(principal, name).pk)
    live, objective = found.spec.live, found.spec.problem.objectives[0]
    assert live is not None
    windows = {"window": live.window, "restart_window": live.restart_window}
    ended = access.rows(Trial, principal).filter(study_id=found.study.pk, live__isnull=False, finished_at__isnull=False)
    return Details(
        component=found.study.component,
        application=found.study.application,
        metric=objective.metric,
        goal=objective.goal,
        min_gain=live.min_gain,
        most_pairs=live.pairs.most,
        approve=live.approve.to_json(),
        freeze=live.freeze,
        least_broken=LEAST_BROKEN,
        windows=[_window(key, one, found.time) for key, one in windows.items() if one is not None],
        outcomes=[_outcome(trial) for trial in ended.order_by("-number")[:_MOST_OUTCOMES]],
    )


def _window(name: str, window: Window, now: datetime) -> WindowStatus:
    left, texts = window.seconds_left(now), window.to_json()
    # People read the end of a day as 24:00.
    hours = f"{texts['hours'].partition('-')[0]}-24:00" if texts["hours"].endswith("-00:00") else texts["hours"]
    opens_at = None if left else window.opens_at(now)
    return WindowStatus(name, texts["days"], hours, texts["zone"], opens_at, left)


def _outcome(trial: Trial) -> Outcome:
    assert trial.live is not None
    found, data = LiveOutcome.from_json(trial.live), trial.reason_data
    return Outcome(
        trial=trial.number,
        state=trial.state,
        decision=found.decision,
        effect=found.effect,
        low=found.low,
        high=found.high,
        pairs=found.pairs,
        kept=found.kept,
        guard=found.guard,
        reason=trial.reason,
        reason_data=None if data is None else {"code": data["code"], "values": data["values"]},
        ended_at=trial.finished_at,
        changes={
            key: [found.incumbent.get(key), value]
            for key, value in trial.params.items()
            if found.incumbent.get(key) != value
        },
    )
