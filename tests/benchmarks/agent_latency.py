"""Time from the end of an agent's trial to the start of its next one: embedded service, `random`, one slot.

The trials do nothing; they themselves note when they begin and end, so that all that lies between counts: the agent
notices the end, journals and reports it, the service settles it and grants the next, the agent starts a process.

Run as `python -m tests.benchmarks.agent_latency [--quick]`.
"""

import itertools
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from tests.benchmarks.agents import APPLICATION, COMPONENT, running_agent
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.service import EmbeddedService

TARGET_MILLISECONDS = 50.0
REPETITIONS = 5


def gaps(service: EmbeddedService, notes: Path, trials: int) -> list[float]:
    """Milliseconds between the trials of one study."""
    import trimtab

    notes.unlink(missing_ok=True)
    client = trimtab.Client(service.grpc_address, token=service.token)
    study = client.create_study(
        f"bench-{uuid.uuid4().hex[:12]}",
        space=[trimtab.Float("x", 0.0, 1.0)],
        objectives=[trimtab.Minimize("loss")],
        algorithm="random",
        max_trials=trials,
        component=COMPONENT,
        application=APPLICATION,
        parallelism=1,
    )
    end = time.monotonic() + 30 + trials
    while study.refresh().finished_count < trials:
        if time.monotonic() > end:
            raise RuntimeError("the agent does not finish its trials")
        time.sleep(0.5)
    times = [tuple(map(int, line.split())) for line in notes.read_text().splitlines()]
    return [(begin - end) / 1e6 for (_, end), (begin, _) in itertools.pairwise(times)]


def run(quick: bool) -> Result:
    """See the module's text."""
    trials, repetitions = (30, 1) if quick else (100, REPETITIONS)
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name:
        folder = Path(name)
        with EmbeddedService(folder / "service") as service, running_agent(service, folder):
            gaps(service, folder / "notes", 10)  # warms connections and caches
            series = [gaps(service, folder / "notes", trials) for _ in range(repetitions)]
    median = statistics.median(statistics.median(one) for one in series)
    ninetieth = statistics.median(statistics.quantiles(one, n=10)[-1] for one in series)
    target = f"under {TARGET_MILLISECONDS:g} ms"
    rows = [
        Row("from a trial's end to the next one's start, median", median, "ms", target, median < TARGET_MILLISECONDS),
        Row("… nine in ten are under", ninetieth, "ms"),
    ]
    return result(rows, milliseconds=series)


if __name__ == "__main__":
    main("Latency between an agent's trials", run)
