"""The optimisers and guides of the comparison. Each recommends a configuration of a system and claims a gain.

All have the same number of runs, by the same code, and measure the default first. What a tool without statistics claims
is what its users read: its best single value against its single value of the default.
"""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import optuna

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.parameters import (
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
)
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.check import CheckResult, FinalCheck
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from tests.benchmarks.systems.systems import System
from tests.benchmarks.systems.trial import Run, Trials
from tests.benchmarks.uv import uv
from trimtab_components.schema import as_text

ROOT = Path(__file__).resolve().parents[3]
MLOS = ("mlos-bench==0.6.2", "mlos-core[smac]==0.6.2", "smac==2.4.1", "pytz")
MLOS_SECONDS = 3600
# With SMAC 2.4, an assertion about SMAC's own counters ends mlos_bench after the second trial. Earlier ones are built
# from source.
NO_ASSERTIONS = "PYTHONOPTIMIZE"


@dataclass(frozen=True)
class Found:
    """The configuration that a tool recommends, and the gain that it claims, with an interval if it has one.

    Without a claim the gain is None. `lines` is the number of lines that a person has written, without the script of a
    trial. `broken` runs have broken a limit, and `failed` ones have failed or were not possible.
    """

    params: Configuration
    gain: float | None
    low: float | None = None
    high: float | None = None
    text: str = ""
    lines: int = 0
    trials: int = 0
    failed: int = 0
    broken: int = 0
    runs: Sequence[Mapping[str, Any]] = field(default_factory=list)


def by_best_value(problem: Problem, runs: Sequence[Run], lines: int) -> Found:
    """Return the best single value of the runs, the first of which is the default."""
    values = [(value, place) for place, run in enumerate(runs) if (value := run.value(problem)) is not None]
    assert values, f"no run has worked; the last one: {runs[-1].reason}"
    best, place = min(values)
    default = runs[0].value(problem)
    return Found(
        runs[place].params,
        None if default is None else 1 - best / default,
        lines=lines,
        trials=len(runs),
        failed=sum(run.value(problem) is None and not run.is_broken(problem) for run in runs),
        broken=sum(run.is_broken(problem) for run in runs),
        runs=[asdict(run) for run in runs],
    )


# --- random search, by a generator that knows the constraints


def random_search(system: System, seed: int, trials: Trials) -> Found:
    """Return the best single value of random configurations."""
    problem = system.problem
    tuner = Tuner(problem, Method(algorithm="random", seed=seed, resampling="none", budget=system.trials))
    runs = [trials.run(problem.space.default())]
    cursor = 0
    while len(runs) < system.trials:
        answer = tuner.suggest(1, cursor=cursor)
        cursor = answer.cursor
        run = trials.run(answer.items[0].configuration)
        runs.append(run)
        value = run.value(problem)
        state = TrialState.INFEASIBLE if value is None else TrialState.COMPLETED
        metrics = {} if value is None else run.metrics
        tuner.update([TrialRecord(len(runs), run.params, state, metrics, len(runs), run.seconds, "suggested")])
    return by_best_value(problem, runs, _lines(random_search))


# --- Optuna's TPE with its defaults


def optuna_tpe(system: System, seed: int, trials: Trials) -> Found:
    """Return Optuna's best trial. Limits are its constraints, and it has the default as its first trial."""
    problem = system.problem
    runs: list[Run] = []

    def objective(trial: optuna.Trial) -> float:
        run = trials.run(problem.space.prune({one.name: _suggested(trial, one) for one in problem.space.parameters}))
        runs.append(run)
        trial.set_user_attr("broken", float(run.is_broken(problem)))
        if not run.metrics:
            raise optuna.TrialPruned
        return run.metrics[problem.metrics[0]]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(
        seed=seed,
        constraints_func=(lambda trial: [trial.user_attrs["broken"]]) if problem.outcome_constraints else None,
    )
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(_encoded(problem, problem.space.default_values()))
    study.optimize(objective, n_trials=system.trials)
    return by_best_value(problem, runs, _lines(optuna_tpe) + len(problem.space.parameters))


def _suggested(trial: optuna.Trial, one: Parameter) -> Any:
    match one:
        case FloatParameter():
            return trial.suggest_float(one.name, one.min, one.max, log=one.log)
        case IntParameter():
            return trial.suggest_int(one.name, one.min, one.max, log=one.log)
        case OrdinalParameter():
            return one.values[trial.suggest_int(one.name, 0, len(one.values) - 1)]
        case CategoricalParameter():
            return trial.suggest_categorical(one.name, one.values)
    return trial.suggest_categorical(one.name, [False, True])


def _encoded(problem: Problem, values: Configuration) -> dict[str, Any]:
    """Return values for Optuna, to which an ordinal one is a rank."""
    return {
        one.name: one.values.index(values[one.name]) if isinstance(one, OrdinalParameter) else values[one.name]
        for one in problem.space.parameters
    }


# --- MLOS, in an environment of its own


def mlos(system: System, seed: int, trials: Trials, folder: Path) -> Found:
    """Return the best observation of mlos_bench with SMAC, whose environment is the script `trial`.

    It has no limits on metrics: a run that breaks one is a failed trial for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "runs.jsonl"
    log.unlink(missing_ok=True)
    own = ["env", "--unset", NO_ASSERTIONS, sys.executable, "-m", f"{__package__}.trial"]
    texts = mlos_files(system, seed, own, trials.state, log)
    for name, text in texts.items():
        (folder / name).write_text(text)
    # mlos_bench wants its files to be in a repository of Git that has a commit and an origin.
    author = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost"]
    for words in (["init"], ["remote", "add", "origin", "."], [*author, "commit", "--allow-empty", "--message=files"]):
        subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    packages = [word for package in MLOS for word in ("--with", package)]
    command = [uv(), "run", "--quiet", "--no-project", "--python", "3.11", *packages, "mlos_bench"]
    done = subprocess.run(
        [*command, "--config", "cli.jsonc"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", NO_ASSERTIONS: "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=MLOS_SECONDS,
    )
    (folder / "mlos.log").write_text(done.stdout + done.stderr)
    runs = [Run(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    if len(runs) < system.trials:
        raise RuntimeError(f"mlos_bench has made {len(runs)} runs: see {folder / 'mlos.log'}")
    return by_best_value(system.problem, runs, sum(text.count("\n") for text in texts.values()))


def mlos_files(system: System, seed: int, command: Sequence[str], state: Path, log: Path) -> dict[str, str]:
    """Return the configuration of mlos_bench: its files, with one line for each parameter."""
    tunables = ",\n".join(
        f"  {json.dumps(one.name)}: {json.dumps(_tunable(one))}" for one in system.problem.space.parameters
    )
    words = [*command, system.name, str(state), str(log), "parameters.json", "result.csv"]
    environment = {
        "class": "mlos_bench.environments.local.local_env.LocalEnv",
        "name": system.name,
        "include_tunables": ["tunables.jsonc"],
        "config": {
            "tunable_params": [system.name],
            "dump_params_file": "parameters.json",
            "run": [" ".join(words)],
            "read_results_file": "result.csv",
        },
    }
    optimizer = {
        "class": "mlos_bench.optimizers.mlos_core_optimizer.MlosCoreOptimizer",
        "config": {
            "optimization_targets": {"score": "min"},
            "max_suggestions": system.trials,
            "optimizer_type": "SMAC",
            "seed": seed + 1,  # 0 means a random one
        },
    }
    cli = {
        "config_path": ["."],
        "environment": "environment.jsonc",
        "optimizer": "optimizer.jsonc",
        "experiment_id": f"{system.name}-{seed}",
        "trial_id": 1,
        "log_level": "INFO",
    }
    return {
        "tunables.jsonc": f'{{{json.dumps(system.name)}: {{"cost": 1, "params": {{\n{tunables}\n}}}}}}\n',
        **{
            f"{name}.jsonc": json.dumps(content, indent=1) + "\n"
            for name, content in {"environment": environment, "optimizer": optimizer, "cli": cli}.items()
        },
    }


def _tunable(one: Parameter) -> dict[str, Any]:
    default = one.default_value()
    match one:
        case FloatParameter() | IntParameter():
            log = {"log": True} if one.log else {}
            return {"type": one.kind, "range": [one.min, one.max], "default": default, **log}
        case OrdinalParameter():
            return {"type": "int", "range": [0, len(one.values) - 1], "default": one.values.index(default)}
        case CategoricalParameter():
            values = list(map(as_text, one.values))
        case _:
            values = ["false", "true"]
    return {"type": "categorical", "values": values, "default": as_text(default)}


# --- a guide


def expert(system: System) -> Found:
    """Return the settings of the guide, which claims no number."""
    space = system.problem.space
    return Found(space.prune({**space.default_values(), **system.expert}), None, lines=len(system.expert))


# --- auto


def auto(system: System, seed: int, trials: Trials) -> Found:
    """Return the verdict of `auto`: the search and its final check share the runs. A service runs the same tuner."""
    problem = system.problem
    check = FinalCheck(max_trials=system.check, effects=0)
    search = system.trials - system.check
    tuner = Tuner(problem, Method(algorithm="auto", seed=seed, budget=search, final_check=check))
    runs: list[Run] = []

    def measure(configuration: Configuration, origin: str, number: int | None = None) -> None:
        runs.append(trials.run(configuration))
        tuner.update([_record(runs[-1], len(runs), origin, number)])

    measure(problem.space.default(), "default")
    cursor = 0
    while len(runs) < search:
        answer = tuner.suggest(1, cursor=cursor)
        cursor = answer.cursor
        measure(answer.items[0].configuration, answer.items[0].origin)
    recommended = tuner.recommend()
    assert recommended is not None, "the search has found nothing"
    best = recommended.configuration
    if problem.space.key(best) == problem.space.key(problem.space.default()):
        return _found(problem, runs, best, None, "the default is the best", system)
    while turns := tuner.check_runs(best, 1):
        measure(turns[0].configuration, "check", turns[0].round)
    checked = tuner.checked(best)
    if not checked.better:
        return _found(problem, runs, problem.space.default(), None, checked.text, system)
    return _found(problem, runs, best, checked, checked.text, system)


def _record(run: Run, number: int, origin: str, round_: int | None) -> TrialRecord:
    state = TrialState(run.outcome.upper())
    disturbed = Interference.from_json(run.interference) if run.interference else None
    metrics = run.metrics if state is TrialState.COMPLETED else {}
    return TrialRecord(
        number, run.params, state, metrics, number, run.seconds, origin, interference=disturbed, round=round_
    )


def _found(
    problem: Problem, runs: Sequence[Run], params: Configuration, checked: CheckResult | None, text: str, system: System
) -> Found:
    return Found(
        params,
        checked.gain if checked else None,
        checked.low if checked else None,
        checked.high if checked else None,
        text=text,
        lines=_written(system.path) + _written(system.path.with_name("component.yaml")),
        trials=len(runs),
        failed=sum(run.value(problem) is None and not run.is_broken(problem) for run in runs),
        broken=sum(run.is_broken(problem) for run in runs),
        runs=[asdict(run) for run in runs],
    )


def _lines(function: Callable[..., object]) -> int:
    return sum(bool(line.strip()) for line in inspect.getsource(function).splitlines())


def _written(path: Path) -> int:
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in path.read_text().splitlines())
