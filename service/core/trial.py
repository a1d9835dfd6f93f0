"""The record of a trial that algorithms, policies and estimates use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.core.interference import MOST_SHARE, Interference, share_of
from service.core.lifecycle import TrialState
from service.core.live_results import LiveOutcome
from service.core.space import Configuration


@dataclass(frozen=True)
class TrialRecord:
    """One evaluation of one configuration.

    `metrics` are the final ones: empty unless COMPLETED or PRUNED, where they are a bound. `seconds` is the running
    time without any time in a queue; None if it is unknown. `origin` is "default", "suggested", "replicate" (a policy
    repeated a configuration), "check" (part of the final comparison with the default), "added" (a user reported a
    measurement), "enqueued" (a user requested a measurement), "earlier" (the configuration of an earlier study) or
    "rollout" (a step of the roll-out of kept settings).
    `doubtful`: something disturbed its timing. `stale`: it was measured before the system changed. `interference`: what
    its agent measured of other processes. `round`: its round in the final check. `agent` and `node`: where it ran.
    `reason`: why it has no value, for people.
    `live`: what the trial of a live study has found.
    """

    number: int
    configuration: Configuration
    state: TrialState
    metrics: Mapping[str, float]
    revision: int = 0
    seconds: float | None = None
    origin: str = ""
    doubtful: bool = False
    stale: bool = False
    interference: Interference | None = None
    round: int | None = None
    agent: str = ""
    node: str = ""
    reason: str = ""
    live: LiveOutcome | None = None

    @property
    def is_of_search(self) -> bool:
        """Return whether the search has made the trial: no user has added it, and it is not part of the final check."""
        return self.origin not in ("added", "check")

    @property
    def share(self) -> float | None:
        """The share of the run's CPUs that other processes took; None if it is unknown."""
        return share_of(self.interference, doubtful=self.doubtful)

    @property
    def disturbed(self) -> bool:
        """True if other processes took more than a tenth of the run's CPUs."""
        return self.share is not None and self.share > MOST_SHARE


def usual_share(trials: Sequence[TrialRecord]) -> float:
    """Return the share of their CPUs that other processes usually took from a study's runs: the lower quartile.

    An unknown share counts as none.
    """
    shares = sorted(trial.share or 0.0 for trial in trials)
    return shares[(len(shares) - 1) // 4] if shares else 0.0


def trusted(trials: Sequence[TrialRecord], usual: float = 0.0, metric: str = "") -> Sequence[TrialRecord]:
    """Return those of a configuration's runs that count for a metric, at least one.

    Stale runs do not count if there are others. Runs that were disturbed more than is `usual` in the study
    (`usual_share`) do not count if at least as many others remain, and at least two: a single undisturbed run may be
    the lucky one. Disturbances do not change some metrics, such as CPU time.
    """
    fresh = [trial for trial in trials if not trial.stale] or trials
    quiet = [trial for trial in fresh if not _is_slowed(trial, usual, metric)]
    return quiet if len(quiet) >= max(2, len(fresh) - len(quiet)) else fresh


def _is_slowed(trial: TrialRecord, usual: float, metric: str) -> bool:
    """Return whether other processes took more of a run's CPUs than usual, and the metric shows that."""
    if trial.interference is not None and metric in trial.interference.unaffected:
        return False
    return trial.share is not None and trial.share > usual + MOST_SHARE
