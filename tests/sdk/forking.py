"""A program whose child processes measure the trials of one study: `python -m tests.sdk.forking WAY STUDY`.

It prints, as JSON, the trials that each child measured, and the names under which they asked.
"""

import faulthandler
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

import trimtab
from tests.factories.patience import PATIENCE
from trimtab.study import Study

CHILDREN, TRIALS = 4, 5
# After so many seconds a process shows where its threads are, and ends.
HANGS_SECONDS = int(PATIENCE / 2)
Measured = tuple[str, list[int]]


def optimize(study: Study, client: trimtab.Client) -> Measured:
    """Measure trials with `optimize`."""
    numbers: list[int] = []
    study.optimize(
        lambda params: float(params["x"]),
        n_trials=TRIALS,
        progress=False,
        callbacks=[lambda _, trial: numbers.append(trial.number)],
    )
    return study.client_id, numbers


def ask(study: Study, client: trimtab.Client) -> Measured:
    """Measure trials one after the other."""
    return study.client_id, [measure(study) for _ in range(TRIALS)]


def in_threads(study: Study, client: trimtab.Client) -> Measured:
    """Measure trials in threads that the child starts."""
    with ThreadPoolExecutor(3) as pool:
        return study.client_id, list(pool.map(lambda _: measure(study), range(TRIALS)))


def by_name(study: Study, client: trimtab.Client) -> Measured:
    """Measure trials of the study that the child reads itself."""
    return ask(client.get_study(study.name), client)


def measure(study: Study) -> int:
    """Measure a trial and return its number."""
    [trial] = study.ask()
    study.report(trial, step=1, metrics=float(trial.params["x"]))
    return study.tell(trial, float(trial.params["x"])).number


def with_optuna(study: Study, client: trimtab.Client) -> Measured:
    """Measure trials with the sampler of Optuna that the parent has made."""
    import optuna

    found = optuna.load_study(study_name=study.name, storage=os.environ["STORAGE"], sampler=SAMPLER)
    found.optimize(lambda trial: trial.suggest_float("x", -4, 4) ** 2, n_trials=TRIALS)
    linked = SAMPLER.trimtab_study(found)
    return linked.client_id, [one.number for one in linked.trials() if one.client_id == linked.client_id]


SAMPLER: Any = None
WAYS: dict[str, Callable[[Study, trimtab.Client], Measured]] = {
    "optimize": optimize,
    "ask": ask,
    "threads": in_threads,
    "name": by_name,
    "busy": ask,
    "optuna": with_optuna,
}


def child(way: str, study: Study, client: trimtab.Client, answers: Any) -> None:
    """Measure, and send what was measured, or the error."""
    end_if_it_hangs()
    try:
        answers.put(WAYS[way](study, client))
    except BaseException as error:
        answers.put(("".join(traceback.format_exception(error)), []))
        raise


def end_if_it_hangs() -> None:
    """Show where the threads of this process are, and end it, if it is not done in time. A child inherits no timer.

    The timer of faulthandler itself is a thread, for which a child would wait for ever.
    """
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(HANGS_SECONDS)


def in_processes(context: BaseContext, way: str, study: Study, client: trimtab.Client) -> list[Measured]:
    """Run the children as processes of `multiprocessing`."""
    answers: Any = context.SimpleQueue()
    processes = [context.Process(target=child, args=(way, study, client, answers)) for _ in range(CHILDREN)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    # A child that dies gives no answer, and the others still have its end of the pipe.
    found: list[Measured] = []
    while len(found) < len(processes):
        multiprocessing.connection.wait([answers._reader, *[one.sentinel for one in processes if one.exitcode is None]])
        while not answers.empty():
            found.append(answers.get())
        died = [one.exitcode for one in processes if one.exitcode]
        assert not died, f"children ended with {died}"
    for process in processes:
        process.join()
    assert all(numbers for _, numbers in found), "".join(name for name, numbers in found if not numbers)
    return found


def in_pool(context: BaseContext, study: Study, client: trimtab.Client) -> list[Measured]:
    """Measure each trial in a task of an executor, to which the study is sent each time."""
    with ProcessPoolExecutor(CHILDREN, mp_context=context) as pool:
        tasks = [pool.submit(_task, study) for _ in range(CHILDREN * TRIALS)]
        done = [task.result() for task in tasks]
    return [(name, [number for own, number in done if own == name]) for name in dict.fromkeys(own for own, _ in done)]


def in_joblib(study: Study) -> list[Measured]:
    """Measure each trial in a task of joblib, whose processes are not forked."""
    import joblib  # type: ignore[import-untyped]
    from joblib.externals.loky import get_reusable_executor  # type: ignore[import-untyped]

    done = joblib.Parallel(n_jobs=2)(joblib.delayed(_task)(study) for _ in range(CHILDREN * TRIALS))
    get_reusable_executor().shutdown()  # its processes hold the pipe to the test
    return [(name, [number for own, number in done if own == name]) for name in dict.fromkeys(own for own, _ in done)]


def _task(study: Study) -> tuple[str, int]:
    return study.client_id, measure(study)


def keep_busy(study: Study) -> None:
    """Make calls in threads of the parent all the time: short ones, held ones and a stream."""

    def short() -> None:
        while True:
            study.refresh()

    def watch() -> None:
        for _ in study.watch():
            pass

    for work in (short, short, watch):
        threading.Thread(target=work, daemon=True).start()


def main(way: str, name: str) -> None:
    """Make the children, and print what they have measured."""
    global SAMPLER
    end_if_it_hangs()
    method, _, way = way.rpartition(":")
    context = multiprocessing.get_context(method or "fork")
    client = trimtab.Client()
    study = client.create_study(
        name,
        space=[trimtab.Float("x", -4, 4, default=0.0)],
        objectives=[trimtab.Minimize("value")],
        algorithm="random",
        load_if_exists=True,
    )
    [held] = study.ask()  # the thread that renews leases works in the parent
    if way == "busy":
        keep_busy(study)
    if way == "optuna":
        import optuna

        from trimtab.optuna import TrimtabSampler

        SAMPLER = TrimtabSampler(client, name=f"{name}-optuna", algorithm="random")
        first = optuna.create_study(study_name=name, storage=os.environ["STORAGE"], sampler=SAMPLER)
        first.optimize(lambda trial: trial.suggest_float("x", -4, 4) ** 2, n_trials=2)
    if way == "pool":
        found = in_pool(context, study, client)
    elif way == "joblib":
        found = in_joblib(study)
    else:
        found = in_processes(context, way, study, client)
    study.tell(held, 1.0)
    print(json.dumps({"held": held.number, "parent": study.client_id, "children": found}), flush=True)
    # The parent ends although its threads are in the middle of a call.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
