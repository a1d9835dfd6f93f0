"""A driver of Ray Tune, as a user writes one: python ray_driver.py new|restore STUDY FOLDER TRIALS

Address and token of the service are in the environment. Each trial appends a line to FOLDER/runs when it begins, with
its worker's process number, and waits at each step for FOLDER/gate; where x is 2, at the second for FOLDER/second-gate.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

import trimtab
from trimtab.ray import TrimtabScheduler, TrimtabSearch

STEPS = 9
way, name, place, count = sys.argv[1:]
folder = Path(place)
metric = os.environ.get("METRIC", "loss")


def trainable(config: dict[str, Any]) -> None:
    """Report loss = x plus a term that falls with the steps. The test explains the values of x above 1."""
    with (folder / "runs").open("a") as runs:
        runs.write(json.dumps([config["x"], os.getpid(), config["constant"]]) + "\n")
    if config["x"] == 5.0:
        raise RuntimeError("broken\nfor good")
    if config["x"] == 3.0:
        raise trimtab.Infeasible("x must not be 3")
    for step in range(1, STEPS + 1):
        gate = "second-gate" if config["x"] == 2.0 and step == 2 else "gate"
        while not (folder / gate).exists():
            time.sleep(0.05)
        loss = float("nan") if config["x"] == 4.0 else config["x"] + 1 / step
        tune.report({metric: loss, "memory": 10.0 * step, "note": "text"})


ray.init(os.environ["RAY_TEST_ADDRESS"], log_to_driver=False, logging_level="error")
study = trimtab.Client().get_study(name)
if way == "new":
    search = TrimtabSearch(study)
    scheduler = ASHAScheduler(metric="loss", mode="min", max_t=STEPS, grace_period=3, reduction_factor=3)
    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1}),
        param_space={"constant": 7},
        tune_config=tune.TuneConfig(
            search_alg=search,
            scheduler=TrimtabScheduler(search, scheduler),
            num_samples=int(count),
            max_concurrent_trials=2,
            # a worker takes seconds to start
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name="tuned",
            storage_path=str(folder),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=int(os.environ.get("MAX_FAILURES", "0"))),
        ),
    )
else:
    tuner = tune.Tuner.restore(str(folder / "tuned"), tune.with_resources(trainable, {"cpu": 1}))
results = tuner.fit()
print(json.dumps([result.metrics for result in results], default=str))
