"""The wait of one tenant for a costly suggestion while another tenant has a thousand studies that wait for theirs.

One worker computes all suggestions. A tenant's operations take turns with those of other tenants, so a single ask waits
for the operation that is being computed and then for its own. Run as `python -m tests.benchmarks.fairness [--quick]`.
"""

from __future__ import annotations

import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np

import trimtab
from tests.benchmarks.scale import tokens
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.service import EmbeddedService

PARAMETERS = 6
# Results of each study before its costly suggestion. The start design has six configurations.
RESULTS = 8
STUDIES, ASKS = 1_000, 40
QUICK_STUDIES, QUICK_ASKS = 50, 5
# Threads that prepare the studies.
THREADS = 8


def _study(client: trimtab.Client, name: str) -> trimtab.Study:
    """Return a study whose next suggestion is costly."""
    study = client.create_study(
        name,
        space=[trimtab.Float(f"x{number}", 0.0, 1.0) for number in range(PARAMETERS)],
        objectives=[trimtab.Minimize("loss")],
        algorithm="gp",
    )
    drawn = random.Random(name)
    for _ in range(RESULTS):
        params = {f"x{number}": drawn.random() for number in range(PARAMETERS)}
        study.add_trial(params, sum(value**2 for value in params.values()))
    return study


def _waits(study: trimtab.Study, asks: int) -> list[float]:
    """Return the seconds that each ask took."""
    found = []
    for _ in range(asks):
        began = time.monotonic()
        (trial,) = study.ask()
        found.append(time.monotonic() - began)
        study.tell(trial, 1.0)
    return found


def _ask(study: trimtab.Study) -> None:
    """Ask without waiting for the answer."""
    with suppress(trimtab.Timeout):
        study.ask(timeout=0.01)


def run(quick: bool) -> Result:
    """See the module's text."""
    studies, asks = (QUICK_STUDIES, QUICK_ASKS) if quick else (STUDIES, ASKS)
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder, EmbeddedService(Path(folder)) as service:
        crowded, single = tokens(service, 2)
        with (
            trimtab.Client(service.grpc_address, token=crowded) as many,
            trimtab.Client(service.grpc_address, token=single) as one,
            ThreadPoolExecutor(THREADS) as pool,
        ):
            own = _study(one, "single")
            _waits(own, 1)
            alone = _waits(own, asks)
            waiting = list(pool.map(lambda number: _study(many, f"study-{number}"), range(studies)))
            began = time.monotonic()
            list(pool.map(_ask, waiting))
            asked = time.monotonic() - began
            crowd = _waits(own, asks)
            # The rest of the crowd waits still, or the figures mean nothing.
            left = sum(study.refresh().trial_count == RESULTS for study in waiting)
    assert left, "All studies of the crowd had their suggestions before the single tenant had its own."
    rows = [
        Row(f"wait for a suggestion, {label}, {part}", float(np.percentile(found, share)), "s")
        for label, found in (("alone", alone), (f"next to {studies:,} studies", crowd))
        for part, share in (("median", 50), ("99th percentile", 99))
    ]
    rows.append(Row("studies that still waited at the end", left, "", note=f"all had asked within {asked:.0f} s"))
    return result(rows, alone=alone, crowd=crowd)


if __name__ == "__main__":
    main("Fairness between tenants", run)
