"""A program that asks and tells until the file STOP exists, with the SDK of the Python that runs it.

    python steady_client.py ADDRESS TOKEN STUDY ALGORITHM LEDGER STOP

It writes each acknowledged result into the file LEDGER: the trial's number and the value. A call that fails for good
ends it with a traceback.
"""

import sys
import time
from pathlib import Path

import trimtab

PAUSE_SECONDS = 0.3
# As in tests/factories/patience.py, which the Python of an earlier version does not find.
PATIENCE = 600.0


def main(address: str, token: str, name: str, algorithm: str, ledger: str, stop: str) -> None:
    """Tune `name` until it is told to stop."""
    with trimtab.Client(address, token) as client, Path(ledger).open("a", buffering=1) as acknowledged:
        study = client.create_study(
            name,
            space=[trimtab.Float("x", -5, 5), trimtab.Int("n", 1, 9)],
            objectives=[trimtab.Minimize("y")],
            algorithm=algorithm,
            seed=1,
        )
        while not Path(stop).exists():
            for trial in study.ask(2, timeout=PATIENCE):
                value = (float(trial.params["x"]) - 2) ** 2 + int(trial.params["n"])
                study.report(trial, step=1, metrics={"y": value + 1})
                study.tell(trial, value)
                acknowledged.write(f"{trial.number} {value!r}\n")
            assert study.refresh().state == "ACTIVE"
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
