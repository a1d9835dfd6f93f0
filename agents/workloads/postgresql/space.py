"""Read the settings of the installed PostgreSQL from pg_settings and print them as parameters of a component, as JSON.

    python3 space.py NAME ...

Type, values, unit, default (boot_val) and context come from the server. The ranges of pg_settings end at terabytes and
days, so LIMITS narrows those of known settings; another numeric setting needs an entry there. A setting that this
version does not have is left out with a message. `fsync`, `full_page_writes` and `synchronous_commit` decide whether
commits survive a crash: they are refused unless the name is written as `unsafe:NAME`.
"""

import json
import sys
from collections.abc import Sequence

from cluster import ClusterError, MachineError, temporary

UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")
# Least and greatest value in the setting's unit (blocks of 8 kB, kB, MB, ms, s); a list has the values themselves.
LIMITS: dict[str, tuple[float, float] | list[int]] = {
    "shared_buffers": (1024, 131072),
    "effective_cache_size": (16384, 524288),
    "work_mem": (256, 262144),
    "hash_mem_multiplier": (1, 8),
    "wal_buffers": [-1, 64, 256, 512, 1024, 2048, 4096],  # -1: a part of shared_buffers
    "max_wal_size": (64, 8192),
    "checkpoint_timeout": (30, 3600),
    "checkpoint_completion_target": (0.1, 1),
    "commit_delay": (0, 2000),
    "bgwriter_delay": (10, 1000),
    "bgwriter_lru_maxpages": (0, 1000),
    "bgwriter_lru_multiplier": (0, 10),
    "backend_flush_after": (0, 256),
    "wal_writer_delay": (1, 1000),
    "random_page_cost": (1, 8),
    "effective_io_concurrency": (0, 300),
    "max_parallel_workers_per_gather": (0, 4),
    "max_worker_processes": (1, 16),
}
QUERY = """
select name, json_build_object('type', vartype, 'least', min_val, 'most', max_val, 'values', enumvals, 'unit', unit,
       'default', boot_val, 'context', context, 'description', short_desc)
  from pg_settings order by name
"""


class SpaceError(Exception):
    """A name is not allowed."""


def read() -> dict[str, dict[str, object]]:
    """Return pg_settings of a new cluster by name. Raise ClusterError or MachineError."""
    with temporary() as cluster:
        cluster.create()
        cluster.start({})
        rows = (line.split("|", 1) for line in cluster.query(" ".join(QUERY.split())))
        return {name: json.loads(text) for name, text in rows}


def parameter(name: str, row: dict[str, object]) -> dict[str, object]:
    """Return a setting as a parameter. Raise SpaceError for one that cannot be one."""
    kind, default = row["type"], str(row["default"])
    text = str(row["description"]).rstrip(".")
    found: dict[str, object] = {
        "description": f"{text} ({row['context']}).",
        "flag": f"--set={name}={{value}}",
        "omit_default": True,
        **({"unit": row["unit"]} if row["unit"] else {}),
    }
    if kind == "bool":
        return {**found, "type": "categorical", "values": ["on", "off"], "default": default}
    if kind == "enum":
        return {**found, "type": "categorical", "values": row["values"], "default": default}
    limits = LIMITS.get(name)
    if limits is None or kind not in ("integer", "real"):
        raise SpaceError(f"{name}: it is of the type {kind} and has no entry in LIMITS of space.py. Add one.")
    if isinstance(limits, list):
        return {**found, "type": "ordinal", "values": limits, "default": int(default)}
    number = int if kind == "integer" else float
    least, most = max(limits[0], float(str(row["least"]))), min(limits[1], float(str(row["most"])))
    least, most = min(least, float(default)), max(most, float(default))
    log = {"log": True} if least > 0 and most / least >= 100 else {}
    numbers = {"min": number(least), "max": number(most), "default": number(float(default))}
    return {**found, "type": "int" if number is int else "float", **numbers, **log}


def parameters(names: Sequence[str], known: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """Return the settings with these names as parameters. Raise SpaceError."""
    found = {}
    for word in names:
        name = word.removeprefix("unsafe:")
        if name in UNSAFE and name == word:
            raise SpaceError(f"{name}: a crash could lose commits with it. Write unsafe:{name} if you accept that.")
        if name in known:
            found[name] = parameter(name, known[name])
        else:
            print(f"left out: {name}: this PostgreSQL has no such setting", file=sys.stderr)
    return found


def main() -> int:
    """Print the parameters; return 1 if that is not possible."""
    try:
        found = parameters(sys.argv[1:], read())
    except (SpaceError, ClusterError, MachineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    json.dump({"parameters": found}, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
