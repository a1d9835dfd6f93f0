"""A client of the chaos test: it asks, measures and tells until its study has ended, and notes acknowledged results.

    python -m tests.chaos.client ADDRESS TOKEN STUDY NOTES [SECONDS]

The notes are the truth outside of the service: a line of JSON is on the disk before the next ask. The process may be
killed at any moment, and started again under the same name or not at all.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

import trimtab
from tests.chaos.studies import NOISE, STEPS, at_step
from trimtab.errors import Conflict
from trimtab.study import Study
from trimtab.trial import Trial

# A client that is killed loses its trials after this time to another one.
LEASE = 10.0
PATIENCE = 600.0


def main(address: str, token: str, name: str, notes: str, seconds: str = "0.05") -> None:
    """Work on the study until it has ended."""
    with (
        trimtab.Client(address, token=token, retry_seconds=PATIENCE, plaintext=True) as client,
        Path(notes).open("a", encoding="utf-8") as file,
    ):
        study = client.get_study(name)
        while True:
            try:
                trials = study.ask(1, lease=LEASE)
            except Conflict:
                if study.refresh().state.finished:
                    return
                # Others measure the last trials of the budget.
                time.sleep(1.0)
                continue
            for trial in trials:
                try:
                    ended = measure(study, trial, float(seconds))
                except Conflict:
                    # Another client has measured it, because this process was stopped for too long.
                    continue
                line = {"trial": ended.number, "params": dict(ended.params), "metrics": dict(ended.metrics)}
                file.write(json.dumps({**line, "state": ended.state}) + "\n")
                file.flush()
                os.fsync(file.fileno())


def measure(study: Study, trial: Trial, seconds: float) -> Trial:
    """Measure a trial, with its steps if the study has a pruning policy. Return the trial as it has ended."""
    if study.spec.pruning:
        for step in range(1, STEPS + 1):
            reported = study.report(trial, step=step, metrics=at_step(trial.params, step))
            if reported.should_prune():
                return reported
    time.sleep(seconds)
    return study.tell(trial, at_step(trial.params, STEPS) + random.uniform(-NOISE, NOISE))


if __name__ == "__main__":
    main(*sys.argv[1:])
