"""Prints the quality of suggestions: `python -m tests.benchmarks.quality [--half development] [--seeds 20]`.

A run that was interrupted continues. Each figure is the distance of the recommended configuration to the optimum, in
per cent of the distance of the median configuration.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.quality.compare import (
    FOLDER,
    OPTIMISERS,
    Records,
    distances,
    geometric_mean,
    mean_ranks,
    searches,
    shares_won,
)
from tests.benchmarks.quality.search import FIRST_SEED


def main() -> None:
    """Run the searches that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=tuple(FIRST_SEED), default="development")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--optimisers", default=",".join(OPTIMISERS), help="names, such as gp,ax (default: %(default)s)"
    )
    parser.add_argument("--cases", default="", help="part of a problem's name; others are left out")
    parser.add_argument("--label", default="now", help="the version of the code, in the file's name")
    parser.add_argument("--jobs", type=int, default=None, help="searches at a time (default: one for each core)")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    show(
        searches(
            given.half,
            given.optimisers.split(","),
            given.seeds,
            part=given.cases,
            label=given.label,
            jobs=given.jobs,
            folder=given.folder,
        )
    )


def show(records: Records) -> None:
    """Print medians, means and 90th percentiles, and what follows for all problems."""
    found = distances(records)
    ranks = mean_ranks(found)
    cases = list(dict.fromkeys(case for case, _ in found))
    table = Table(title="Distance to the optimum, % (median / mean / 90th percentile)", title_justify="left")
    for title in ("problem", *ranks):
        table.add_column(title)
    for case in cases:
        values = [found[case, optimiser] for optimiser in ranks]
        table.add_row(
            case, *(f"{np.median(one):.3g} / {np.mean(one):.3g} / {np.quantile(one, 0.9):.3g}" for one in values)
        )
    table.add_section()
    table.add_row("mean rank", *(bootstrap(one).text(2) for one in ranks.values()))
    of_each = [[geometric_mean(found[case, optimiser]) for case in cases] for optimiser in ranks]
    table.add_row("geometric mean", *(f"{geometric_mean(one):.2f}" for one in of_each))
    won = shares_won(records)
    table.add_row(f"{next(iter(ranks))} is better, %", "", *(bootstrap(won[one]).text(0) for one in won))
    seconds = [np.mean([one["seconds"] for one in records if one["optimiser"] == optimiser]) for optimiser in ranks]
    table.add_row("CPU seconds", *(f"{one:.2f}" for one in seconds))
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
