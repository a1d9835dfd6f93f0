"""Settings by the rules of PGTune, written from the published description of its calculation.

The rules know the memory that PostgreSQL may use, the number of processors and connections, the kind of application
and the kind of disk. They do not look at the load itself.
"""

import json
import sys

KINDS = {"oltp": 300, "web": 200, "mixed": 100, "dw": 40}
"""The kinds of applications with PGTune's numbers of connections: many short transactions, a web site, a mixture, a
data warehouse."""

KIB_OF_BLOCK = 8
MOST_MAINTENANCE_KIB = 2 << 20
WAL_MIB = {"oltp": (2048, 8192), "web": (1024, 4096), "mixed": (1024, 4096), "dw": (4096, 16384)}


def settings(kind: str, memory_mib: int, processors: int) -> dict[str, object]:
    """Return the settings, in the units of pg_settings, for a solid-state disk."""
    memory = 1024 * memory_mib
    shared = memory // 4
    least_wal, most_wal = WAL_MIB[kind]
    wal_buffers = min(shared * 3 // 100, 16384)
    found: dict[str, object] = {
        "max_connections": KINDS[kind],
        "shared_buffers": shared // KIB_OF_BLOCK,
        "effective_cache_size": memory * 3 // 4 // KIB_OF_BLOCK,
        "maintenance_work_mem": min(memory // (8 if kind == "dw" else 16), MOST_MAINTENANCE_KIB),
        "checkpoint_completion_target": 0.9,
        "wal_buffers": max(wal_buffers, 32) // KIB_OF_BLOCK,
        "default_statistics_target": 500 if kind == "dw" else 100,
        "random_page_cost": 1.1,
        "effective_io_concurrency": 200,
        "min_wal_size": least_wal,
        "max_wal_size": most_wal,
    }
    workers = 1
    if processors >= 4:
        workers = processors // 2 if kind == "dw" else min(processors // 2, 4)
        found["max_worker_processes"] = found["max_parallel_workers"] = processors
        found["max_parallel_workers_per_gather"] = workers
    # what the sorts of all connections may take together
    work = (memory - shared) // (3 * KINDS[kind]) // workers
    found["work_mem"] = max(work // 2 if kind in ("dw", "mixed") else work, 64)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: pgtune.py {'|'.join(KINDS)} MEMORY_MIB PROCESSORS")
    print(json.dumps(settings(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), indent=1))
