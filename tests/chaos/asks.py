"""The time of an ask of a study with a costly algorithm: alone, during attacks of another tenant, and with faults."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from rich.table import Table

import trimtab
from tests.chaos.studies import BUDGET

# The asks before the measurement: a worker imports what it needs.
WARM_UP = 12
ASKS = 60
# An ask during the attacks takes at most so many times as long as alone (99th percentile).
MOST_TIMES = 3.0
ALONE, ATTACKED, WITH_FAULTS = "alone", "during the attacks", "during the attacks, with faults"


class Asks:
    """One client that asks and reports results, and how long its asks took, by phase."""

    def __init__(self, client: trimtab.Client) -> None:
        self._client = client
        self._study: trimtab.Study | None = None
        self._left = 0
        self._studies = 0
        self.seconds: dict[str, list[float]] = {}

    def measure(self, phase: str, *, until: Callable[[int], bool], meanwhile: Callable[[], None]) -> None:
        """Ask and tell until `until` holds for the number of asks. Each phase begins with a study of its own."""
        taken = self.seconds.setdefault(phase, [])
        self._left = 0
        while not until(len(taken)):
            taken.append(self._ask())
            meanwhile()

    def warm_up(self) -> None:
        """Ask a few times, and forget it."""
        self.measure("warm-up", until=lambda count: count >= WARM_UP, meanwhile=lambda: None)
        del self.seconds["warm-up"]

    def _ask(self) -> float:
        if self._study is None or self._left == 0:
            self._studies += 1
            self._left = BUDGET
            self._study = self._client.create_study(
                f"asks-{self._studies}",
                space=[trimtab.Float("x", -10.0, 10.0), trimtab.Int("n", 0, 8)],
                objectives=[trimtab.Minimize("value")],
                algorithm="gp",
                seed=1,
                load_if_exists=True,
            )
        self._left -= 1
        began = time.monotonic()
        (trial,) = self._study.ask(1)
        taken = time.monotonic() - began
        x, n = float(trial.params["x"]), int(trial.params["n"])
        self._study.tell(trial, (x - 3.0) ** 2 + n)
        return taken

    def table(self) -> Table:
        """Return the times by phase."""
        table = Table(title="Seconds of an ask of a study with gp, of a tenant that does no harm", title_justify="left")
        for heading in ("phase", "asks", "median", "99th percentile", "longest"):
            table.add_column(heading, justify="left" if heading == "phase" else "right")
        for phase, taken in self.seconds.items():
            if taken:
                figures = (statistics.median(taken), highest(taken), max(taken))
                table.add_row(phase, str(len(taken)), *(f"{one:.2f}" for one in figures))
        return table

    def check(self) -> None:
        """Raise AssertionError if the attacks have made asks too slow."""
        alone, attacked = highest(self.seconds[ALONE]), highest(self.seconds[ATTACKED])
        assert attacked <= MOST_TIMES * alone, (
            f"an ask during the attacks takes {attacked:.2f} s, and {alone:.2f} s alone (99th percentile): more than "
            f"{MOST_TIMES:g} times as long"
        )


def highest(taken: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(taken, n=100, method="inclusive")[98] if len(taken) > 1 else taken[0]
