"""Studies and trials as JSON, for programs."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from trimtab.cli.results import common_failures
from trimtab.trial import Trial

if TYPE_CHECKING:
    from trimtab.study import Study


def study_json(study: "Study") -> dict[str, object]:
    """Return the status of a study as JSON."""
    status = study.status
    reported = {field.name: getattr(status, field.name) for field in fields(status)}
    choice = status.algorithm_choice
    reported["algorithm_choice"] = None if choice is None else asdict(choice)
    reported["started_from"] = [asdict(one) for one in status.started_from]
    reported["space_edits"] = [asdict(one) for one in status.space_edits]
    return {"name": study.name, **reported}


def result_json(study: "Study") -> dict[str, object]:
    """Return the verdict and the best trials of a study as JSON."""
    verdict, pareto, penalties = study.verdict, study.pareto_verdict, study.penalties
    return {
        "verdict": None if verdict is None else asdict(verdict),
        "pareto_verdict": None if pareto is None else asdict(pareto),
        "penalties": None if penalties is None else asdict(penalties),
        "best": [trial_json(trial) for trial in study.best_trials],
        "failures": [{"reason": reason, "trials": trials} for reason, trials in common_failures(study)],
    }


def trial_json(trial: Trial) -> dict[str, object]:
    """Return a trial as JSON, without its measurements and log."""
    skipped = ("study", "measurements", "log", "interference")
    found = {field.name: getattr(trial, field.name) for field in fields(trial) if field.name not in skipped}
    return {**found, "interference": None if trial.interference is None else asdict(trial.interference)}


def full_json(study: "Study", trials: Sequence[Trial]) -> dict[str, object]:
    """Return a study with its specification (in the form of a study file) and its trials as JSON."""
    return {
        **study_json(study),
        "spec": study.file_content(),
        "trials": [trial_json(trial) for trial in trials],
    }
