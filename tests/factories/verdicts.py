"""Studies with each kind of verdict: an agent runs them to their end, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from service.core.space import Scalar
from service.fleet import runs
from service.planning.create import create_study
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.tell import stop_trial
from tests.factories.domain import make_execution, study_name
from tests.factories.fleet import AGENT, acquire, register, study
from tests.unit.trials.policies.calls import with_default

MACHINE = "Xeon, Linux 6.1, gcc 12"
LIMIT = "memory_mb <= 900"
OTHERS = "other processes used 50 % of the CPUs"
DEFAULT = 0.5
_noise = count()


def noisy(value: float) -> float:
    """Return a value with a little noise."""
    return value + 0.01 * (next(_noise) % 7)


@dataclass(frozen=True)
class Ran:
    """How a trial ended on the agent. `bound`: it was stopped after this measurement."""

    metrics: Mapping[str, float]
    outcome: str = "completed"
    doubt: str = ""
    machine: str = MACHINE
    bound: float | None = None


def took(seconds: float, **more: Any) -> Ran:
    """Return a trial that took so long, with a little noise."""
    return Ran({"seconds": noisy(seconds), "memory_mb": 500.0}, **more)


def faster(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    """Return 10 s for the default (x 0.5) and below, 8 s above."""
    return took(8.0 if float(params["x"]) > DEFAULT else 10.0)


@dataclass(frozen=True)
class Kind:
    """A kind of study: what differs in its spec and in the component, and how its trials end."""

    ran: Callable[[Mapping[str, Scalar], str, int], Ran] = faster
    spec: Mapping[str, Any] = field(default_factory=dict)
    component: Mapping[str, Any] = field(default_factory=dict)
    level: str = "proven"
    code: str = "better"


def _at_last(best: Callable[[float], Ran]) -> Callable[[Mapping[str, Scalar], str, int], Ran]:
    """Return how trials end that promise a gain, and in the final check end as `best` says for the best one."""

    def ran(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
        is_best = float(params["x"]) > DEFAULT
        return best(float(params["x"])) if origin == "check" and is_best else faster(params, origin, number)

    return ran


def _disturbed(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    seconds = 8.0 if float(params["x"]) > DEFAULT else 10.0
    return took(seconds, doubt=OTHERS if origin == "check" else "")


def _huge(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    return took(1.0 if float(params["x"]) > DEFAULT else 10.0, doubt=OTHERS if origin == "check" else "")


def _limited(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    """Return the shortest times for configurations that need too much memory; the best of the others needs it once."""
    x = float(params["x"])
    memory = 1000.0 if x > 0.8 else 901.0 if x > DEFAULT and origin == "check" and number % 5 == 0 else 500.0
    return Ran({"seconds": noisy(4.0 if x > 0.8 else 8.0 if x > DEFAULT else 10.0), "memory_mb": memory})


def _penalised(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    return Ran({"seconds": 1e9, "memory_mb": 500.0}) if float(params["x"]) < 0.3 else faster(params, origin, number)


def _pruned(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    return took(10.0, bound=7.0) if float(params["x"]) < 0.3 else faster(params, origin, number)


def _two_machines(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    return took(8.0 if float(params["x"]) > DEFAULT else 10.0, machine=MACHINE if number % 2 else "Epyc")


def _two_metrics(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    x = float(params["x"])
    return Ran({"seconds": noisy(10.0 - 4.0 * abs(x - DEFAULT)), "memory_mb": noisy(500.0 - 300.0 * x)})


def _in_context(params: Mapping[str, Scalar], origin: str, number: int) -> Ran:
    """Return a gain of x above a half for small inputs only."""
    return took(10.0 if params["size"] == "large" or float(params["x"]) <= DEFAULT else 8.0)


_MEMORY = [{"metric": "seconds", "goal": "minimize", "unit": "s"}, {"metric": "memory_mb", "goal": "minimize"}]
_SIZE = {"name": "size", "type": "categorical", "values": ["small", "large"]}
_INJECTED = {"injected": [{"text": "contention", "application": "", "parameter": "", "values": []}]}
KINDS: Mapping[str, Kind] = {
    "proven": Kind(),
    "proven-disturbed": Kind(_huge),
    "disturbed": Kind(_disturbed, level="provisional", code="disturbed"),
    "provisional": Kind(
        spec={
            "final_check": None,
            "budget": {"max_trials": 18},
            "resampling": {"name": "static", "options": {"n": 3}},
        },
        level="provisional",
    ),
    "none": Kind(lambda params, origin, number: took(10.0), level="no measurable gain", code="not_better"),
    "worse": Kind(_at_last(lambda x: took(12.0)), level="no measurable gain", code="worse"),
    "failed": Kind(_at_last(lambda x: Ran({}, outcome="infeasible")), level="no measurable gain", code="fails"),
    "limits": Kind(_limited, {"outcome_constraints": [LIMIT], "budget": {"max_trials": 12}}),
    "breaks": Kind(
        _at_last(lambda x: Ran({"seconds": noisy(8.0), "memory_mb": 1000.0})),
        {"outcome_constraints": [LIMIT]},
        level="no measurable gain",
        code="breaks_constraint",
    ),
    "injected": Kind(component=_INJECTED),
    "machines": Kind(_two_machines),
    "penalties": Kind(_penalised, {"budget": {"max_trials": 12}}),
    "pruned": Kind(_pruned, {"budget": {"max_trials": 12}}),
    "pareto": Kind(_two_metrics, {"objectives": _MEMORY, "final_check": {"max_trials": 60}}, _INJECTED),
    "context": Kind(_in_context, {"context": [{"name": "size"}], "budget": {"max_trials": 16}}),
}


def make_study(principal: Principal, kind: str, name: str = "") -> str:
    """Run a study of this kind to its end, and return its name."""
    made = KINDS[kind]
    name = name or f"{kind}-{study_name()}"[:63]
    component = f"component-{name}"[:63]
    register(principal, **{"name": component, "metrics": ["seconds", "memory_mb"], **made.component})
    spec = with_default(
        **{
            "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
            "budget": {"max_trials": 6},
            "final_check": {"max_trials": 20, "effects": 0},
            "execution": make_execution(component=component),
            **made.spec,
        }
    )
    if kind == "context":
        spec["space"]["parameters"].append(_SIZE)
    create_study(principal, name, spec)
    run_to_the_end(principal, name, made)
    return name


def run_to_the_end(principal: Principal, name: str, made: Kind) -> None:
    """Run the trials of a study until it has ended."""
    while study(principal, name).state == "ACTIVE":
        _run(principal, name, made)


def _run(principal: Principal, name: str, made: Kind) -> None:
    (grant,) = acquire(principal)
    runs.report_started(principal, agent_id=AGENT, lease=grant.lease, node="n1", invocation=None)
    trial = access.rows(Trial, principal).get(study__name=name, number=grant.trial)
    ran = made.ran(trial.params, trial.origin, trial.number)
    if ran.bound is not None:
        metrics = {**ran.metrics, "seconds": ran.bound}
        runs.report_measurement(principal, agent_id=AGENT, lease=grant.lease, step=1, metrics=metrics)
        stop_trial(principal, name, grant.trial)
    runs.settle(
        principal,
        agent_id=AGENT,
        lease=grant.lease,
        outcome="cancelled" if ran.bound is not None else ran.outcome,  # type: ignore[arg-type]
        metrics=ran.metrics,
        node="n1",
        doubt=ran.doubt,
        machine=ran.machine,
    )
