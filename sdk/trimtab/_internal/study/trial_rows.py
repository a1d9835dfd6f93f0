"""Trials as rows, for data frames and files."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from trimtab.space import Bool, Int, Scalar
from trimtab.spec import StudySpec
from trimtab.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

Cell: TypeAlias = Scalar | datetime | None


def columns(spec: StudySpec, trials: Sequence[Trial]) -> list[str]:
    """Return the column names: the trial, its parameters, its metrics, then the rest."""
    metrics = list(dict.fromkeys([objective.metric for objective in spec.objectives]))
    others = sorted({name for trial in trials for name in trial.metrics} - set(metrics))
    # Trials from before an edit of the space may have parameters that it lacks now.
    names = [parameter.name for parameter in spec.space]
    removed = sorted({name for trial in trials for name in trial.params} - set(names))
    return [
        "number",
        "state",
        *(f"params.{name}" for name in [*names, *removed]),
        *(f"metrics.{name}" for name in [*metrics, *others]),
        *(["breaks"] if spec.outcome_constraints else []),
        "reason",
        "origin",
        "repeat",
        "attempt",
        "agent",
        "node",
        "doubt",
        "share",
        "wait",
        "round",
        "machine",
        "client_id",
        "created_at",
        "started_at",
        "finished_at",
    ]


def row(trial: Trial) -> dict[str, Cell]:
    """Return the cells of a trial by column. Inactive parameters and missing metrics are omitted."""
    return {
        "number": trial.number,
        "state": str(trial.state),
        **{f"params.{name}": value for name, value in trial.params.items()},
        **{f"metrics.{name}": value for name, value in trial.metrics.items()},
        **({"breaks": "; ".join(trial.breaks)} if trial.breaks else {}),
        "reason": trial.reason,
        "origin": trial.origin,
        "repeat": trial.repeat,
        "attempt": trial.attempt,
        "agent": trial.agent,
        "node": trial.node,
        "doubt": trial.doubt,
        **({"share": trial.interference.share, "wait": trial.interference.wait} if trial.interference else {}),
        "round": trial.round,
        "machine": trial.machine,
        "client_id": trial.client_id,
        "created_at": trial.created_at,
        "started_at": trial.started_at,
        "finished_at": trial.finished_at,
    }


def to_dataframe(spec: StudySpec, trials: Sequence[Trial]) -> "pd.DataFrame":
    """Return a data frame with a row for each trial. Raises ImportError if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "to_dataframe needs pandas, which is not installed: `pip install pandas`, or use study.trials()."
        ) from error
    names = columns(spec, trials)
    frame = pd.DataFrame([row(trial) for trial in trials], columns=names)
    # The cell of an inactive parameter is empty. NumPy's integers and booleans cannot represent that.
    for parameter in spec.space:
        name = f"params.{parameter.name}"
        if isinstance(parameter, Int):
            frame[name] = frame[name].astype("Int64")
        elif isinstance(parameter, Bool):
            frame[name] = frame[name].astype("boolean")
    return frame
