"""The part that all trackers of experiments share."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from urllib.parse import quote

from trimtab.errors import InvalidInput
from trimtab.study import Study
from trimtab.trial import Trial


class TrialLogger(ABC):
    """Copies finished trials to a tracker: each trial is one run.

    There are two ways to use it. In a program that measures trials itself, it is a callback:

        study.optimize(fn, callbacks=[logger])

    For a study whose trials run on agents or in other programs, it follows the study:

        logger.follow(study)

    Every trial is copied once, also if the program starts again, or if several programs copy the same study one after
    the other.
    """

    def __init__(self, console: str = "") -> None:
        if console and not console.startswith(("http://", "https://")):
            raise InvalidInput.of("console", console, "the console's address, such as https://tune.example.org, or ''")
        self._console = console.rstrip("/")

    def __call__(self, study: Study, trial: Trial) -> None:
        """Copy the trial if it has ended."""
        if trial.state.finished:
            self.log(study, trial)

    @abstractmethod
    def log(self, study: Study, trial: Trial) -> None:
        """Copy a finished trial, unless the tracker has it already."""

    def follow(self, study: Study, timeout: float | None = None) -> None:
        """Copy all finished trials, and then each further one when it ends, until the study has ended.

        Raises:
            Timeout: the study had not ended after `timeout` seconds.
        """
        for change in study.watch(timeout):
            for trial in change.trials:
                self(study, trial)

    def _facts(self, study: Study, trial: Trial) -> dict[str, str]:
        """Return what a run says about its trial, as text by name; without empty texts."""
        facts = {
            "study": study.name,
            "trial": str(trial.number),
            "state": str(trial.state),
            "origin": trial.origin,
            "reason": trial.reason,
            "agent": trial.agent,
            "node": trial.node,
            "machine": trial.machine,
            "doubt": trial.doubt,
            "interference": str(trial.interference or ""),
            "breaks": "; ".join(trial.breaks),
            "url": f"{self._console}/studies/{quote(study.name)}/trials/{trial.number}" if self._console else "",
        }
        return {name: text for name, text in facts.items() if text}


def identity(study: Study) -> str:
    """Return a text that differs for another study, also for a later one of the same name."""
    created = study.status.created_at
    return f"{study.name} {created.isoformat() if created else ''}".strip()


def digest(*parts: object) -> str:
    """Return 32 hexadecimal digits that stand for the parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def steps(study: Study, trial: Trial) -> Mapping[int, Mapping[str, float]]:
    """Return the metrics of each step of a trial, in order; none if it has no value.

    The result of a trial is one step after its last measurement, or the step 0 if it has none.
    """
    # Lists and streams of trials come without their measurements.
    whole = study.trial(trial.number)
    found = {one.step: one.metrics for one in sorted(whole.measurements, key=lambda one: one.step)}
    last = max(found, default=-1)
    if whole.metrics and found.get(last) != whole.metrics:
        found[last + 1] = whole.metrics
    return found
