"""Trimtab finds settings that make a system measurably better.

For example:

    import trimtab

    client = trimtab.Client("127.0.0.1:8471", token="...")
    study = client.create_study(
        "my-study",
        space=[trimtab.Float("x", 1e-3, 10, log=True), trimtab.Int("n", 1, 16)],
        objectives=[trimtab.Minimize("seconds")],
    )
    study.optimize(lambda params: measure(**params), n_trials=50, parallel=4)
    print(study.best_trial.params)
"""

from typing import TYPE_CHECKING

from trimtab import errors
from trimtab.arguments import with_arguments
from trimtab.context import ContextRow, ContextTable
from trimtab.errors import Infeasible, Timeout, TrimtabError
from trimtab.fleet import Agent, BestSettings, Component
from trimtab.identity import ApiToken, Identity
from trimtab.live import (
    KeptSettings,
    LiveBrief,
    LiveBudget,
    LiveCheck,
    LiveInstance,
    LiveJobs,
    LiveOverview,
    LivePlan,
    LiveReading,
    LiveRollout,
    LiveStatus,
)
from trimtab.method import (
    Compared,
    Effects,
    FinalCheck,
    ObjectiveGain,
    ParameterEffect,
    ParetoMember,
    ParetoVerdict,
    PenaltyAdvice,
    Policy,
    Recommendation,
    SmallestConfiguration,
    Verdict,
    VerdictLevel,
)
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.records import Job, Match, MatchingSettings, Record, RecordState
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Params
from trimtab.spec import EarlierTrials, JobMetadata, Outside, Placement, SpaceEdit, StartedFrom, StudyState
from trimtab.trial import Interference, Measurement, Note, Trial, TrialState

if TYPE_CHECKING:
    from trimtab.best import Best, Rendered
    from trimtab.client import Client
    from trimtab.study import Study

    __version__: str

__all__ = [
    "Agent",
    "ApiToken",
    "Best",
    "BestSettings",
    "Bool",
    "Categorical",
    "Client",
    "Compared",
    "Component",
    "ContextRow",
    "ContextTable",
    "EarlierTrials",
    "Effects",
    "FinalCheck",
    "Float",
    "Identity",
    "Infeasible",
    "Int",
    "Interference",
    "Job",
    "JobMetadata",
    "KeptSettings",
    "LiveBrief",
    "LiveBudget",
    "LiveCheck",
    "LiveInstance",
    "LiveJobs",
    "LiveOverview",
    "LivePlan",
    "LiveReading",
    "LiveRollout",
    "LiveStatus",
    "Match",
    "MatchingSettings",
    "Maximize",
    "Measurement",
    "Minimize",
    "Note",
    "Objective",
    "ObjectiveGain",
    "Ordinal",
    "Outside",
    "Parameter",
    "ParameterEffect",
    "Params",
    "ParetoMember",
    "ParetoVerdict",
    "PenaltyAdvice",
    "Placement",
    "Policy",
    "Recommendation",
    "Record",
    "RecordState",
    "Rendered",
    "SmallestConfiguration",
    "SpaceEdit",
    "StartedFrom",
    "Study",
    "StudyState",
    "Timeout",
    "Trial",
    "TrialState",
    "TrimtabError",
    "Verdict",
    "VerdictLevel",
    "errors",
    "with_arguments",
]


def __getattr__(name: str) -> object:
    """Return `Client`, `Study` or `__version__`. Their modules, and gRPC with them, are imported at the first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("trimtab")
    if name == "Client":
        from trimtab.client import Client

        return Client
    if name in ("Best", "Rendered"):
        from trimtab import best

        return getattr(best, name)
    if name == "Study":
        from trimtab.study import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
