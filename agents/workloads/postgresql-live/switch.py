"""Apply settings to a running PostgreSQL server, take them back, show them, and read its statistics, with psql.

    switch.py apply|revert|verify|keep|stats HOST-PORT [METRIC]

The settings are in an include file in /run/trimtab (or in POSTGRESQL_LIVE_RUN), which is empty after a boot. `keep`
writes settings that stay into /var/lib/trimtab (or POSTGRESQL_LIVE_KEPT). postgresql.conf ends with these lines:

    include_if_exists '/var/lib/trimtab/postgresql-HOST-PORT.conf'
    include_if_exists '/run/trimtab/postgresql-HOST-PORT.conf'
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

RUN = Path(os.environ.get("POSTGRESQL_LIVE_RUN", "/run/trimtab"))
KEPT = Path(os.environ.get("POSTGRESQL_LIVE_KEPT", "/var/lib/trimtab"))
NAMES = (
    *("work_mem", "maintenance_work_mem", "effective_cache_size", "random_page_cost", "effective_io_concurrency"),
    *("default_statistics_target", "jit", "checkpoint_completion_target", "bgwriter_delay"),
)
SWITCHES = {"on": True, "off": False}
# Statistics of all databases, and the seconds of the oldest statement of clients.
STATISTICS = """
select coalesce(sum(xact_commit + xact_rollback), 0), coalesce(sum(xact_rollback), 0), coalesce(sum(active_time), 0),
  (select coalesce(max(extract(epoch from now() - query_start)), 0) from pg_stat_activity
    where state = 'active' and backend_type = 'client backend' and pid <> pg_backend_pid())
from pg_stat_database
"""


def main() -> None:
    """Do what the command line asks for."""
    action, instance, *metric = sys.argv[1:]
    file = (KEPT if action == "keep" else RUN) / f"postgresql-{instance}.conf"
    if action in ("apply", "keep"):
        wanted = json.load(sys.stdin)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text("".join(f"{name} = '{text(value)}'\n" for name, value in wanted.items()))
        new.chmod(0o644)
        new.replace(file)
        wrong = ask(instance, "select name || ': ' || error from pg_file_settings where error is not null")
        if wrong:
            sys.exit(f"postgresql.conf: {wrong[0][0]}")
        ask(instance, "select pg_reload_conf()")
    elif action == "revert":
        # Without the file, a server that is away starts with the old settings.
        file.unlink(missing_ok=True)
        ask(instance, "select pg_reload_conf()")
    elif action == "verify":
        names = ", ".join(f"'{name}'" for name in NAMES)
        shown = ask(instance, f"select name, setting from pg_settings where name in ({names})")
        print(json.dumps({name: SWITCHES.get(value, value) for name, value in shown}))
    else:
        stats(instance, *metric)


def stats(instance: str, metric: str = "") -> None:
    """Print statistics. The mean time of a transaction is that since the last call for it."""
    ((transactions, rollbacks, active_ms, longest),) = ask(instance, STATISTICS)
    found = {"transactions": int(transactions), "rollbacks": int(rollbacks), "longest_s": float(longest)}
    if metric == "mean_ms":
        last = RUN / f"postgresql-{instance}.stats"
        now = [float(transactions), float(active_ms), time.monotonic()]
        try:
            before = json.loads(last.read_text())
        except (OSError, ValueError):
            before = None
        RUN.mkdir(parents=True, exist_ok=True)
        new = last.with_name(f"{last.name}.{os.getpid()}")
        new.write_text(json.dumps(now))
        new.replace(last)
        # Two calls for this statistic itself are a transaction each.
        if before is None or not now[0] - before[0] > 1 or not now[1] > before[1] or now[2] - before[2] > 60:
            sys.exit("no transaction has ended since the last reading")
        found["mean_ms"] = (now[1] - before[1]) / (now[0] - before[0])
    print(json.dumps(found))


def text(value: object) -> str:
    """Return a value as postgresql.conf has it. No value of a parameter has a quote."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def ask(instance: str, statement: str) -> list[list[str]]:
    """Return the rows of a statement."""
    host, _, port = instance.rpartition("-")
    where = [] if host == "local" else ["-h", host]
    asked = subprocess.run(
        ["psql", "-X", "-A", "-t", "-q", "-F", "\t", *where, "-p", port, "-v", "ON_ERROR_STOP=1", "-c", statement],
        capture_output=True,
        text=True,
        timeout=8,
        env={"PGDATABASE": "postgres", "PGUSER": "postgres", "PGCONNECT_TIMEOUT": "3", **os.environ},
    )
    if asked.returncode:
        sys.exit(f"psql: {asked.stderr.strip()[:300]}")
    return [line.split("\t") for line in asked.stdout.splitlines() if line]


if __name__ == "__main__":
    main()
