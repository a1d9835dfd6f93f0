"""The studies that are at work during the faults: what a trial runs, and the methods that they take turns with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trimtab
from tests.factories.agent import value
from trimtab.space import Params

BUDGET = 60
ALGORITHMS = ("random", "gp", "ga")
COMPONENT = "slope"
APPLICATION = "main"
# A trial reports a value at each step. It falls to the value of the configuration at the last one.
STEPS = 3
# No two measurements of a client are equal, so that the service cannot take one for the repetition of another.
NOISE = 1e-6

_PROGRAM = f"""
import sys, time
x, n = float(sys.argv[1]), int(sys.argv[2])
for step in range(1, {STEPS} + 1):
    time.sleep(0.03)
    print(f"step {{step}} value={{(x - 3.0) ** 2 + n + {STEPS} - step!r}}", flush=True)
print(f"end={{(x - 3.0) ** 2 + n!r}}")
"""
_DESCRIPTION = f"""
name: {COMPONENT}
parameters:
  x: {{type: float, min: -10.0, max: 10.0, default: 0.0}}
  n: {{type: int, min: 0, max: 8, default: 4}}
applications:
  {APPLICATION}:
    command: ["{sys.executable}", "{{component}}/slope.py", "{{x}}", "{{n}}"]
stream:
  - {{pattern: 'step (?P<step>\\d+) value=(?P<value>\\S+)'}}
metrics:
  value: {{type: regex, pattern: 'end=(\\S+)'}}
"""


@dataclass(frozen=True)
class Method:
    """The work of a study next to its search. `most_checks`: the largest number of trials of its final check."""

    options: Mapping[str, Any] = field(default_factory=dict)
    most_checks: int = 0


_CHECKS = 20
METHODS: Mapping[str, Method] = {
    "plain": Method(),
    "pruned": Method({"pruning": "median"}),
    "resampled": Method({"resampling": "adaptive"}),
    "checked": Method({"final_check": trimtab.FinalCheck(max_trials=_CHECKS, effects=0)}, _CHECKS),
}


def at_step(params: Params, step: int) -> float:
    """Return the value that a trial reports at a step."""
    return value(dict(params)) + STEPS - step


def write_component(folder: Path) -> Path:
    """Write the component below `folder`, the folder of the agents' components."""
    home = folder / COMPONENT
    home.mkdir(parents=True)
    (home / "slope.py").write_text(_PROGRAM)
    (home / "component.yaml").write_text(_DESCRIPTION)
    return folder
