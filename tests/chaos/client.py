"""A client of the chaos test: it asks, measures and tells until its study has ended, and notes each acknowledged tell.

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
from tests.chaos.truth import NOISE
from tests.factories.agent import value
from trimtab.errors import Conflict

# A client that is killed loses its trials after this time to another one.
LEASE = 10.0
PATIENCE = 600.0


def main(address: str, token: str, name: str, notes: str, seconds: str = "0.05") -> None:
    """Work on the study until it has ended."""
    with (
        trimtab.Client(address, token=token, retry_seconds=PATIENCE) as client,
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
                time.sleep(float(seconds))
                try:
                    # No two measurements are equal, so that the service cannot take one for the repetition of another.
                    measured = value(dict(trial.params)) + random.uniform(-NOISE, NOISE)
                    told = study.tell(trial, measured)
                except Conflict:
                    # Another client has measured it, because this process was stopped for too long.
                    continue
                line = {"trial": told.number, "params": dict(told.params), "metrics": dict(told.metrics)}
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])
