"""Runs that stand out from other runs of their configuration, and what stood out with them."""

import math
import random
from types import SimpleNamespace
from typing import Any

from trimtab import outliers
from trimtab.trial import Interference

QUIET = Interference(share=0.02, wait=0.0, steal=0.0, swapped=0.0, memory=0.6)


def made(seed: int, changes: dict[int, dict[str, Any]], configurations: int = 8, runs: int = 4) -> list[Any]:
    """Return trials with 3 % of noise; `changes` has factors of metrics, or an interference, by the trial's number."""
    draws = random.Random(seed)
    trials = []
    for number in range(1, configurations * runs + 1):
        change = changes.get(number, {})
        metrics = {
            name: (10.0 + number % configurations) * math.exp(0.03 * draws.gauss(0, 1)) * change.get(name, 1.0)
            for name in ("seconds", "cpu_seconds")
        }
        metrics["reads"] = 1000.0
        interference = change.get("interference", QUIET)
        trials.append(
            SimpleNamespace(
                number=number,
                state="COMPLETED",
                params={"x": number % configurations},
                metrics=metrics,
                interference=interference,
            )
        )
    return trials


def test_runs_are_grouped_by_what_stood_out_with_them() -> None:
    busy = Interference(share=0.7, wait=0.4, steal=0.0, swapped=0.0, memory=0.6)
    changes: dict[int, dict[str, Any]] = {
        3: {"seconds": 1.5, "cpu_seconds": 1.5},
        9: {"seconds": 1.5, "cpu_seconds": 1.5},
        14: {"seconds": 1.6, "interference": busy},
        21: {"seconds": 1.7},
        # a busy machine, but no slow run
        27: {"interference": busy},
    }
    [program, machine, unknown] = outliers.groups(made(0, changes), "seconds")
    assert (program.signs, program.trials) == (("more cpu_seconds",), (3, 9))
    assert machine.trials == (14,)
    assert machine.signs == (
        "other processes took more of the CPUs",
        "the run waited longer for a CPU",
    )
    assert (unknown.signs, unknown.trials) == ((), (21,))
    assert 1.4 < program.ratio < 1.6
    assert str(unknown).endswith("times the median; no counter stood out")


def test_nine_of_ten_bursts_are_found_and_few_others() -> None:
    found = others = bursts = 0
    for seed in range(40):
        slow = random.Random(1000 + seed).sample(range(1, 81), 4)
        groups = outliers.groups(made(seed, {one: {"seconds": 1.3} for one in slow}, 20), "seconds")
        out = {number for one in groups for number in one.trials}
        bursts, found, others = bursts + 4, found + len(out & set(slow)), others + len(out - set(slow))
    assert found >= 0.9 * bursts
    assert others <= 0.02 * 76 * 40


def test_too_few_runs_and_values_without_noise_have_no_outliers() -> None:
    assert outliers.groups([], "seconds") == []
    assert outliers.groups(made(0, {3: {"seconds": 2.0}}, runs=2), "seconds") == []
    assert outliers.groups(made(0, {3: {"seconds": 2.0}}), "reads") == []
    assert outliers.groups(made(0, {}), "no-such-metric") == []
