"""Read the algorithms of the installed Open MPI's collectives and print them as parameters of a component, as JSON.

    python3 algorithms.py

Each collective has `NAME_algorithm` with Open MPI's own names, of which `ignore` (Open MPI decides) is the default;
`NAME_segmentsize` in bytes, 0 for whole messages; and `NAME_fanout` of the chains. The last two are active only for
algorithms that use them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable

DEFAULT = "ignore"
SEGMENTS = [0, *(1024 << step for step in range(10))]
FANOUTS = [1, 2, 3, 4, 6, 8]

# Open MPI accepts segment size and fan-out for every algorithm, but most algorithms ignore them; ompi_info does not say
# which ones. Only settings that a rules file can have are here, so not the radix of bcast's k-nomial tree, for example.
SEGMENTED = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "gather": ("linear_sync",),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
}
FANNED = {"bcast": ("chain",), "gather": (), "reduce": ("chain",), "allreduce": ()}
COLLECTIVES = tuple(SEGMENTED)


class OpenMpiError(Exception):
    """Open MPI is missing, or does not list its algorithms."""


def identifiers() -> dict[str, dict[str, int]]:
    """Return the number of each algorithm by its name, by collective. Raise OpenMpiError."""
    argv = ["ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise OpenMpiError(f"cannot run 'ompi_info': {error.strerror}; install Open MPI (openmpi-bin)") from error
    found: dict[str, dict[str, int]] = {name: {} for name in COLLECTIVES}
    pattern = r".*:coll_tuned_([a-z]+)_algorithm:enumerator:value:(\d+):(\S+)"
    for collective, number, name in re.findall(pattern, answer.stdout):
        if collective in found:
            found[collective][name] = int(number)
    missing = [name for name, numbers in found.items() if numbers.get(DEFAULT) != 0]
    if missing:
        raise OpenMpiError(
            f"'ompi_info' lists no algorithms of {', '.join(missing)}: is this Open MPI, with its component coll/tuned?"
        )
    return found


def describe(collective: str, algorithms: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the parameters of one collective."""
    variable = f"OMPI_MCA_coll_tuned_{collective}_algorithm"
    names = list(algorithms)
    parameters: dict[str, dict[str, object]] = {
        f"{collective}_algorithm": {
            "type": "categorical",
            "values": names,
            "default": DEFAULT,
            "omit_default": True,
            "env": variable,
            "description": f"The algorithm of {collective}; {DEFAULT}: Open MPI decides by size and ranks.",
        }
    }
    for suffix, end, values, default, users, description in (
        ("segmentsize", "segmentsize", SEGMENTS, 0, SEGMENTED, "Bytes sent at a time; 0: the whole message."),
        # Open MPI also has a fan-out of trees, which no algorithm of these collectives uses
        ("fanout", "chain_fanout", FANOUTS, 4, FANNED, "Number of chains that begin at the root."),
    ):
        if active := [name for name in names if name in users[collective]]:
            parameters[f"{collective}_{suffix}"] = {
                "type": "ordinal",
                "values": values,
                "default": default,
                "env": f"{variable}_{end}",
                "condition": {"parent": f"{collective}_algorithm", "values": active},
                "description": description,
            }
    return parameters


def main() -> int:
    """Print all parameters; return 1 if there is no Open MPI."""
    try:
        known = identifiers()
    except OpenMpiError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    described = [describe(collective, sorted(names, key=names.__getitem__)) for collective, names in known.items()]
    json.dump({"parameters": {name: one for parameters in described for name, one in parameters.items()}}, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
