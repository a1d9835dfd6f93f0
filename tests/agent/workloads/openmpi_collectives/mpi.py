"""The real mpirun, and the rules that it finds in a file."""

import subprocess
from pathlib import Path

from tests.agent.workloads.shared import WORKLOADS, run

WORKLOAD = WORKLOADS / "openmpi-collectives"
COLLECTIVES = ("bcast", "gather", "reduce", "allreduce")


NUMBERS = {"allreduce": 2, "bcast": 7, "gather": 9, "reduce": 11}

OPEN_MPI_DECIDES = (0, 0, 0)

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def mpirun(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run mpirun, with more ranks than processors if need be, as root if need be."""
    return run(["mpirun", *arguments], **ENVIRONMENT)


def with_rules(file: Path) -> list[str]:
    """Return the options by which mpirun uses a rules file."""
    return ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename", str(file)]


def look_up(text: str, collective: str, ranks: int, total: int) -> tuple[int, ...]:
    """Return the algorithm, fan-out and segment size that a file gives, found as Open MPI finds them.

    At each level Open MPI takes the last entry that is not above the wanted value, or the first entry.
    """
    numbers = [int(word) for line in text.splitlines() for word in line.partition("#")[0].split()]
    assert all(number >= 0 for number in numbers)
    words = iter(numbers)

    def messages_of() -> list[tuple[int, ...]]:
        return [tuple(next(words) for _ in range(4)) for _ in range(next(words))]

    found: dict[int, list[tuple[int, list[tuple[int, ...]]]]] = {}
    for _ in range(next(words)):
        collective_number = next(words)
        found[collective_number] = [(next(words), messages_of()) for _ in range(next(words))]
    assert next(words, None) is None, "the file has more numbers than its counts announce"
    if NUMBERS[collective] not in found:
        return OPEN_MPI_DECIDES
    of_ranks = found[NUMBERS[collective]]
    messages = next((entry[1] for entry in reversed(of_ranks) if entry[0] <= ranks), of_ranks[0][1])
    return next((entry[1:] for entry in reversed(messages) if entry[0] <= total), messages[0][1:])
