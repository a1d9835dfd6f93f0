"""Profile each prepared target as the linker places it, and link it again with its hot functions in a better order.

    python3 build.py FOLDER --algorithm c3 --threshold 4096 --min-share 0.005 --period-us 1000

FOLDER gets, for each target that prepare.py has made, `TARGET/bin/PROGRAM`, and `TARGET/placement.json` with the
locality of calls in this layout and in the linker's own. The calls are those of the held-out profile of prepare.py,
from which no layout is made. The exit status is 1 if the linker fails with the order, and 3 if the machine is the
cause.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path += [str(FOLDER), str(FOLDER.parent)]

import heldout  # noqa: E402
from gprof import function_order, write_profile  # noqa: E402
from graph import CallGraph, Stack, Symbols, graph_of  # noqa: E402
from linking import LINKERS, Linked, LinkError, Objects, call_graph_profile  # noqa: E402
from locality import locality  # noqa: E402
from ordering import PAGE, call_chain_clustering, pettis_hansen, shuffled  # noqa: E402
from sampling import profiled  # noqa: E402
from serving import MachineError, ServerError  # noqa: E402
from targets import TARGETS, Target  # noqa: E402

MACHINE = 3
ALGORITHMS = ("default", "random", "gprof", "ph", "c3", "lld")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="c3")
    parser.add_argument("--threshold", type=int, default=PAGE, help="largest cluster that C3 merges, bytes")
    parser.add_argument("--min-share", type=float, default=0.0, help="least share of an arc in its callee's samples")
    parser.add_argument("--period-us", type=int, default=1000, help="processor time between samples, microseconds")
    parser.add_argument("--linker", choices=LINKERS, default="gold")
    options = parser.parse_args(argv)
    prepared = [target for target in TARGETS.values() if (target.place / "link.json").is_file()]
    try:
        if not prepared:
            raise MachineError(f"no target is prepared: run python3 {FOLDER / 'prepare.py'} httpd")
        for target in prepared:
            folder = (options.folder / target.name).resolve()
            stacks, before = profiled(target, folder, options.period_us, options.linker)
            placed(target, folder, stacks, before, options, heldout.read(target))
    except (LinkError, ServerError) as error:
        print(error, file=sys.stderr)
        return 1
    except (MachineError, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    return 0


def placed(
    target: Target,
    folder: Path,
    stacks: Sequence[Stack],
    before: Linked,
    options: argparse.Namespace,
    judge: CallGraph,
) -> Linked:
    """Order the functions by the profile, link the program, and write `placement.json` by the profile that judges."""
    graph = graph_of(stacks, before.symbols)
    if not graph.arcs:
        raise MachineError(f"no calls in {len(stacks)} samples of {target.name}: the load was too short")
    program = folder / "bin" / target.program
    objects = Objects(target.source)
    if options.algorithm == "lld":
        file = folder / "calls.txt"
        file.write_text(call_graph_profile(graph, objects.sections()))
        after = objects.link(program, linker="lld", extra=[f"-Wl,--call-graph-ordering-file={file}"])
    else:
        order = ordered(options.algorithm, graph, before.symbols, stacks, before.program, options)
        after = objects.link(program, before.symbols.with_aliases(order), options.linker)
    hot = after.symbols.range_of(name for name, samples in graph.time.items() if samples)
    figures = {
        "algorithm": options.algorithm,
        "samples": sum(graph.time.values()),
        "functions": len(graph.time),
        "calls": sum(graph.arcs.values()),
        "hot": [f"{address:x}" for address in (after.hot if after.hot[1] else hot)],
        "held_out_calls": sum(judge.arcs.values()),
        **locality(judge, after.symbols.address),
        "default": locality(judge, before.symbols.address),
    }
    (folder / "placement.json").write_text(json.dumps(figures) + "\n")
    return after


def ordered(
    algorithm: str,
    graph: CallGraph,
    symbols: Symbols,
    stacks: Sequence[Stack],
    program: Path,
    options: argparse.Namespace,
) -> list[str]:
    """Return the functions in the order of an algorithm; none for the linker's own order."""
    kept = graph.without_rare(options.min_share)
    if algorithm == "ph":
        return pettis_hansen(kept)
    if algorithm == "c3":
        return call_chain_clustering(kept, options.threshold)
    if algorithm == "random":
        return shuffled(list(symbols.address))
    if algorithm == "gprof":
        profile = program.with_suffix(".gmon")
        low, high = symbols.range_of(symbols.address)
        write_profile(stacks, low, high, 1_000_000 // options.period_us, profile)
        return function_order(program, profile)
    return []


if __name__ == "__main__":
    sys.exit(main())
