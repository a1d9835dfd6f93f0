"""Pictures of all measured configurations as in the published study: one panel for each pair of criteria."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import analysis
from analysis import Criterion

import trimtab

MARKERS = "o^sDv"
PANEL_INCHES = 3.2
COLUMNS = 3


def draw(
    folder: Path,
    page: str,
    criteria: Sequence[Criterion],
    by_algorithm: Mapping[str, Mapping[str, Mapping[str, float]]],
    levels: Mapping[str, str],
) -> Path:
    """Write the picture of a page as SVG; return its path. Raise TrimtabError without matplotlib.

    Args:
        folder: the folder for PAGE.svg.
        page: the title.
        criteria: two or more.
        by_algorithm: the medians of the configurations that each algorithm has measured. Each has a marker of its own.
        levels: the labels of plain levels, by configuration.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise trimtab.TrimtabError("no_matplotlib", "--figures needs matplotlib: pip install matplotlib") from None
    points = {
        algorithm: {name: values for name, values in own.items() if all(one.metric in values for one in criteria)}
        for algorithm, own in by_algorithm.items()
    }
    everything = {name: values for own in points.values() for name, values in own.items()}
    front = set(analysis.pareto(everything, criteria))
    pairs = list(itertools.combinations(criteria, 2))
    rows = -(-len(pairs) // COLUMNS)
    # the same points give the same file
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": page, "font.size": 8}):
        figure = Figure(figsize=(PANEL_INCHES * min(len(pairs), COLUMNS), PANEL_INCHES * rows), layout="constrained")
        figure.suptitle(page)
        for place, (across, up) in enumerate(pairs, 1):
            axes = figure.add_subplot(rows, min(len(pairs), COLUMNS), place)
            for marker, (algorithm, own) in zip(itertools.cycle(MARKERS), points.items(), strict=False):
                for inside, colour, words in ((False, "tab:red", ""), (True, "tab:blue", ", Pareto set")):
                    chosen = [values for name, values in own.items() if (name in front) is inside]
                    x, y = ([values[one.metric] for values in chosen] for one in (across, up))
                    axes.plot(x, y, marker, color=colour, markersize=3, label=algorithm + words)
            for name, label in levels.items():
                if name in everything:
                    at = (everything[name][across.metric], everything[name][up.metric])
                    axes.annotate(label, at, xytext=(3, 3), textcoords="offset points", fontsize=7)
            axes.set_xlabel(across.metric)
            axes.set_ylabel(up.metric)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(points))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{page}.svg"
        figure.savefig(path, metadata={"Date": None})
    return path
