"""The tables of the comparison, made of its records.

A gain is the median of the rounds' gains over the default of the same round, and its interval is from the smallest to
the largest one: with six rounds it contains the median of all rounds with a confidence of 97 %.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.systems.systems import SYSTEMS, System

TOOLS = {"auto": "`auto`", "random": "random", "optuna": "Optuna TPE", "mlos": "MLOS, SMAC", "expert": "guide"}
# A claim may differ by so much from what was measured, and two tools whose gains differ by less are level.
POINT = 0.01

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """A recommendation of a tool for a system with one seed, and the measurement of it with an application.

    `values` and `defaults` are the values of the rounds, without rounds in which a run failed. `broken` is the number
    of rounds in which a limit was broken.
    """

    system: System
    seed: int
    tool: str
    application: str
    found: Record
    values: Sequence[float]
    defaults: Sequence[float]
    broken: int

    @property
    def gains(self) -> list[float]:
        """The gains of the rounds."""
        return [1 - value / default for value, default in zip(self.values, self.defaults, strict=True)]

    @property
    def is_usable(self) -> bool:
        """True if it keeps its limits in most rounds."""
        return 2 * self.broken < len(self.values)

    @property
    def true(self) -> float:
        """The gain that is there: none if a limit is broken."""
        return statistics.median(self.gains) if self.is_usable else 0.0

    @property
    def claims(self) -> bool:
        """True if the tool claims a gain."""
        return bool(self.found["gain"])

    @property
    def holds(self) -> bool:
        """True if the claim was measured as well: the intervals overlap, within a point."""
        claimed = self.found["gain"]
        low = claimed if self.found["low"] is None else self.found["low"]
        high = claimed if self.found["high"] is None else self.found["high"]
        return self.is_usable and low - POINT <= max(self.gains) and high + POINT >= min(self.gains)


def results(records: Sequence[Record]) -> list[Result]:
    """Return the results of all tools, for all applications with which they were measured."""
    runs: dict[tuple[str, int, str], dict[tuple[int, str], Record]] = {}
    for one in records:
        if "key" in one and not one.get("again"):
            rounds = runs.setdefault((one["system"], one["seed"], one["application"]), {})
            rounds[one["round"], one["key"]] = one["run"]["metrics"]
    return [
        made
        for one in records
        if "tool" in one and "error" not in one["found"]
        for (name, seed, application), rounds in runs.items()
        if (name, seed) == (one["system"], one["seed"])
        if (made := _result(one, application, rounds)) is not None
    ]


def _result(one: Record, application: str, rounds: Mapping[tuple[int, str], Record]) -> Result | None:
    system = SYSTEMS[one["system"]]
    space, metric = system.problem.space, system.problem.metrics[0]
    default, own = space.key(space.default()), space.key(space.validate(one["found"]["params"]))
    pairs = [
        (rounds[number, own], rounds[number, default])
        for number in sorted({number for number, _ in rounds})
        if rounds.get((number, own)) and rounds.get((number, default))
    ]
    if not pairs:
        return None
    values, defaults = [ours[metric] for ours, _ in pairs], [theirs[metric] for _, theirs in pairs]
    broken = sum(not system.problem.acceptable(ours) for ours, _ in pairs)
    return Result(system, one["seed"], one["tool"], application, one["found"], values, defaults, broken)


def report(records: Sequence[Record]) -> str:
    """Return the tables as Markdown: the gains, what was claimed, and the gains of `auto` on other loads."""
    everything = results(records)
    made = [one for one in everything if one.application == one.system.study["application"]]
    elsewhere = [_other_row(one, made) for one in everything if one.tool == "auto" and one not in made]
    names = [name for name in SYSTEMS if any(one.system.name == name for one in made)]
    gains = [_gains_row(SYSTEMS[name], [one for one in made if one.system.name == name]) for name in names]
    header = ["system: metric", "trials, seeds", "default", *TOOLS.values(), "`auto` is"]
    tools = [_claims_row(tool, made, records) for tool in TOOLS if tool != "expert"]
    claims = [_claim_row(one) for one in made if one.claims]
    return "\n\n".join(
        [
            table(header, gains),
            table(["tool", "claims that hold", "claimed less true", "failed runs", "broken limits", "lines"], tools),
            table(["system", "seed", "tool", "claimed", "true", "holds"], claims),
            table(["system", "seed", "other load", "gain there", "share of the gain"], elsewhere),
        ]
    )


def _gains_row(system: System, made: Sequence[Result]) -> list[str]:
    seeds = sorted({one.seed for one in made})
    [objective] = system.study["objectives"]
    defaults = [value for one in made for value in one.defaults]
    cells = []
    for tool in TOOLS:
        own = [one for one in made if one.tool == tool]
        cells.append(_gain_cell(own) if own else "")
    default = f"{statistics.median(defaults):.4g} {objective.get('unit', '')}".strip()
    study = f"{system.name}: {system.problem.metrics[0]}"
    trials = max(one.found["trials"] for one in made)
    return [study, f"{trials}, {len(seeds)}", default, *cells, _standing(made)]


def _gain_cell(own: Sequence[Result]) -> str:
    """Return the median gain of all rounds, with the smallest and the largest."""
    if not all(one.is_usable for one in own):
        return f"breaks a limit with {sum(not one.is_usable for one in own)} of {len(own)} seeds"
    gains = [gain for one in own for gain in one.gains]
    return f"{percent(statistics.median(gains))} % ({percent(min(gains))} to {percent(max(gains))})"


def _standing(made: Sequence[Result]) -> str:
    """Return whether `auto` is the best, level with the best, or worse, by the rounds of the same seeds."""
    gains = {tool: [one for one in made if one.tool == tool] for tool in TOOLS}
    ours = gains.pop("auto")
    others = {tool: own for tool, own in gains.items() if own and all(one.is_usable for one in own)}
    if not ours or not others or not all(one.is_usable for one in ours):
        return "not measured" if not ours else "worse"
    best = max(others, key=lambda tool: statistics.median([one.true for one in others[tool]]))
    theirs = {(one.seed, place): gain for one in others[best] for place, gain in enumerate(one.gains)}
    less = [
        gain - theirs[one.seed, place]
        for one in ours
        for place, gain in enumerate(one.gains)
        if (one.seed, place) in theirs
    ]
    middle = statistics.median(less)
    if abs(middle) <= POINT or min(less) <= 0 <= max(less):
        return "level"
    return "best" if middle > 0 else f"worse than {TOOLS[best]}"


def _claims_row(tool: str, made: Sequence[Result], records: Sequence[Record]) -> list[str]:
    own = [one for one in made if one.tool == tool]
    claims = [one for one in own if one.claims]
    less = sorted(100 * (one.found["gain"] - one.true) for one in claims)
    off = f"{statistics.median(less):.1f} ({less[0]:.1f} to {less[-1]:.1f})" if less else ""
    failed = sum(one.found["failed"] for one in own)
    broken = sum(one.found["broken"] for one in own)
    trials = sum(one.found["trials"] for one in own)
    errors = sum(one.get("tool") == tool and "error" in one["found"] for one in records)
    lines = sorted({one.found["lines"] for one in own})
    return [
        TOOLS[tool],
        f"{sum(one.holds for one in claims)} of {len(claims)}",
        off,
        f"{failed} of {trials}" + (f"; {errors} searches" if errors else ""),
        str(broken),
        f"{lines[0]} to {lines[-1]}" if lines else "",
    ]


def _claim_row(one: Result) -> list[str]:
    claimed = f"{percent(one.found['gain'])} %"
    if one.found["low"] is not None:
        claimed += f" ({percent(one.found['low'])} to {percent(one.found['high'])})"
    return [one.system.name, str(one.seed), TOOLS[one.tool], claimed, _gain_cell([one]), "yes" if one.holds else "no"]


def _other_row(one: Result, made: Sequence[Result]) -> list[str]:
    [own] = [each for each in made if (each.system, each.seed, each.tool) == (one.system, one.seed, one.tool)]
    share = f"{statistics.median(one.gains) / own.true:.2f}" if own.true else ""
    return [one.system.name, str(one.seed), one.application, _gain_cell([one]), share]


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
