"""Compare the settings that a study with a context has found with the best settings of an exhaustive search.

The parts are measured in rounds, with one running proxy. First come all settings of the study in each of its contexts.
Then these finalists take turns in each context: the default, the study's settings, the best settings of the search for
the context, the best fixed settings (one choice for all contexts, by the geometric mean of the rates), and the policy
`hybrid`. Since other rounds chose the finalists, their luck there does not count.
"""

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

WORKLOAD = Path(__file__).resolve().parent
sys.path.append(str(WORKLOAD.parent))

from experiments import (  # noqa: E402  # next to this file
    Cell,
    Rounds,
    column,
    interval,
    measure,
    ratio,
    shown,
    verdict,
)
from measuring import GOES_ON, INTERRUPTED, write  # noqa: E402  # in the parent folder
from scripts import ScriptError, check_numbers, exit_status, parser_of  # noqa: E402
from trial import TrialError  # noqa: E402

TUNED = {
    "policy": ("disk", "decompress", "compress", "hybrid"),
    "cached-form": ("both", "raw", "gzip"),
    "disk-form": ("requested", "gzip", "raw"),
}
DEFAULT = ("disk", "both", "requested")
HYBRID = ("hybrid", "both", "requested")
EVERY = tuple(itertools.product(*TUNED.values()))
ENOUGH = 0.95  # the share of the exhaustive best that a context's settings should reach
HOW = "Write it by `trimtab study best NAME --format json --out FILE`."
EXAMPLE = """\
examples:
  trimtab study best proxy-context --format json --out table.json
  python agents/workloads/web-proxy/contexts.py agents/workloads/web-proxy/context.yml table.json

"""

Settings = tuple[str, ...]
"""The values of TUNED."""
Context = tuple[object, ...]
"""The values of the context variables."""


@dataclass(frozen=True)
class Plan:
    """The contexts of a study file, and what it keeps fixed."""

    names: tuple[str, ...]
    contexts: tuple[Context, ...]
    fixed: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path) -> "Plan":
        """Read a study file. Raise ScriptError if it tunes other settings or has no context."""
        try:
            study = yaml.safe_load(file.read_text())
            values = {name: one.get("at") or one["values"] for name, one in study["context"].items()}
            fixed, only = dict(study["fixed"]), set(study["only"])
        except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            raise ScriptError(f"{file} is no study file with a context: {type(error).__name__}: {error}") from None
        if only != set(TUNED):
            raise ScriptError(f"{file} tunes {', '.join(sorted(only))}. Use a file that tunes {', '.join(TUNED)}.")
        return cls(tuple(values), tuple(itertools.product(*values.values())), fixed)

    def cell(self, part: str, context: Context, settings: Settings) -> Cell:
        """Return what measures these settings in a context."""
        whole = {**self.fixed, **dict(zip(self.names, context, strict=True)), **dict(zip(TUNED, settings, strict=True))}
        live = ("cache-bytes", "device", *TUNED)
        return Cell(
            part,
            f"{part} {' '.join(map(str, context))} {'/'.join(settings)}",
            tuple((name.replace("-", "_"), whole[name]) for name in live),
            int(whole["clients"]),
            str(whole["law"]),
            float(whole["gzip-share"]),
            int(whole["background"]),
        )

    def words(self, context: Context) -> str:
        """Return a context for people."""
        return ", ".join(f"{name} {value}" for name, value in zip(self.names, context, strict=True))

    def recommended(self, file: Path) -> dict[Context, Settings]:
        """Return the settings of a study's table. Raise ScriptError if it is not a table of this study file."""
        try:
            found = {
                tuple(row["context"][name] for name in self.names): tuple(row["settings"][name] for name in TUNED)
                for row in json.loads(file.read_text())["rows"]
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ScriptError(f"{file} is not the table of a study of this file ({problem}). {HOW}") from None
        if set(found) != set(self.contexts):
            raise ScriptError(f"{file} has the contexts {list(found)} in place of {list(self.contexts)}. {HOW}")
        return found

    def best(self, rounds: Rounds) -> tuple[dict[Context, Settings], Settings]:
        """Return the best settings of each context, and the best settings for all contexts together."""
        rates = {
            (context, settings): rate(rounds, self.cell("grid", context, settings).name)
            for context in self.contexts
            for settings in EVERY
        }
        own = {context: max(EVERY, key=lambda one: rates[context, one]) for context in self.contexts}
        fixed = max(EVERY, key=lambda one: math.fsum(math.log(rates[context, one]) for context in self.contexts))
        return own, fixed


Ways = Mapping[Context, Mapping[str, Settings]]
"""The settings of each finalist, by context and name."""


def rate(rounds: Rounds, name: str) -> float:
    """Return the median requests a second of a cell, at least 0.001."""
    return max(statistics.median(column(rounds, name, "requests_per_second")), 1e-3)


def rates_of(plan: Plan, rounds: Rounds, ways: Ways) -> Iterator[list[str]]:
    """Yield the rows of the table of what was measured in each context."""
    for context, named in ways.items():
        names = {way: plan.cell("finalists", context, settings).name for way, settings in named.items()}
        for way, settings in named.items():
            row = rounds[names[way]]
            hits = f"{statistics.fmean(one['hit_ratio'] for one in row):.0%}"
            found = shown(interval(column(rounds, names[way], "requests_per_second")), 0)
            over = "1" if way == "default" else shown(ratio(rounds, names[way], names["default"]))
            yield [plan.words(context), way, ", ".join(settings), found, hits, over]


def judged(plan: Plan, rounds: Rounds, ways: Ways) -> Iterator[list[str]]:
    """Yield the rows of the table of comparisons, in each context and over all."""
    for context in [*plan.contexts, None]:
        where = "all contexts" if context is None else plan.words(context)
        among = plan.contexts if context is None else (context,)
        for way in ("best of the grid", "best fixed", "hybrid", "default"):
            figures = compared(plan, rounds, ways, among, way)
            if way == "best of the grid":
                yield [where, "study at least 95 % of the best of the grid", shown(figures), enough(figures)]
            elif all(ways[one]["study"] == ways[one][way] for one in among):
                yield [where, f"study > {way}", "1", "the same settings"]
            else:
                yield [where, f"study > {way}", shown(figures), verdict(figures, ">")]


def compared(
    plan: Plan, rounds: Rounds, ways: Ways, contexts: Sequence[Context], way: str
) -> tuple[float, float, float]:
    """Return the ratio of the study's rate to a way's, the geometric mean over contexts, with its interval."""
    columns = []
    for context in contexts:
        pair = [
            column(rounds, plan.cell("finalists", context, ways[context][one]).name, "requests_per_second")
            for one in ("study", way)
        ]
        columns.append([math.log(a / b) for a, b in zip(*pair, strict=True)])
    return interval([math.exp(statistics.fmean(logs)) for logs in zip(*columns, strict=True)])


def enough(figures: tuple[float, float, float]) -> str:
    """Return whether a share of the best is at least ENOUGH, by its interval."""
    _, low, high = figures
    return "holds" if low >= ENOUGH else "does not hold" if high < ENOUGH else "not known"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    parser = parser_of(__doc__, EXAMPLE + GOES_ON)
    parser.add_argument("study", type=Path, help="context.yml or context-hits.yml")
    parser.add_argument("table", type=Path, help="the table of a study of this file, as JSON")
    parser.add_argument("--grid-rounds", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=12, help="rounds of the finalists (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=0.3, help="seconds before it (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("web-proxy-contexts"), help="default: %(default)s")
    options = parser.parse_args(argv)

    def work() -> None:
        check_numbers(options, grid_rounds=1, turns=2)
        plan = Plan.read(options.study)
        study = plan.recommended(options.table)
        cells = [plan.cell("grid", context, settings) for settings in EVERY for context in plan.contexts]
        own, fixed = plan.best(measured(options, options.grid_rounds, cells))
        ways = {
            context: {
                "default": DEFAULT,
                "study": study[context],
                "best of the grid": own[context],
                "best fixed": fixed,
                "hybrid": HYBRID,
            }
            for context in plan.contexts
        }
        named = [(context, settings) for context, found in ways.items() for settings in dict.fromkeys(found.values())]
        rounds = measured(options, options.turns, [plan.cell("finalists", *one) for one in named])
        header = ["context", "settings of", ", ".join(TUNED), "requests a second", "hits", "times the default"]
        write(options.folder / "contexts.md", header, list(rates_of(plan, rounds, ways)))
        header = ["context", "claim", "ratio", "verdict"]
        write(options.folder / "judged.md", header, list(judged(plan, rounds, ways)))

    return exit_status(work, INTERRUPTED)


def measured(options: argparse.Namespace, rounds: int, cells: Sequence[Cell]) -> Rounds:
    """Measure the cells in rounds. Raise ScriptError."""
    try:
        return measure(argparse.Namespace(**{**vars(options), "rounds": rounds}), cells)
    except TrialError as error:
        raise ScriptError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
