"""Run one of pgbench's loads on a new cluster with these settings, and print what was measured as one JSON object.

    python3 bench.py prepare FOLDER [--scale 10]      once: a filled cluster as FOLDER/cluster.tar
    python3 bench.py tpcb FOLDER [--clients 4] [--seconds 3] [--warm-up 1] [--set NAME=VALUE ...]
    python3 bench.py crash FOLDER [--set NAME=VALUE ...]

The loads are `tpcb` and `tpcb-16` (short transactions that write, the second for 16 clients), `select` (short ones that
read), and the reports `analytic` (analytic.sql) and `dashboard` (dashboard.sql). After each load the balances of
accounts, branches, tellers and history must agree.
`crash` kills the server's processes under the load `tpcb`, starts it again, and checks that every acknowledged
transaction is there and that all balances agree. A kill is no power failure: what the kernel has, survives it. A server
that does not start with the settings, or has lost a transaction, ends the run with status 1, a missing program with
status 3.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import Cluster, ClusterError, MachineError, temporary

FOLDER = Path(__file__).resolve().parent
LOADS: Mapping[str, Sequence[str]] = {
    "tpcb": ("--builtin=tpcb-like", "--protocol=prepared"),
    "tpcb-16": ("--builtin=tpcb-like", "--protocol=prepared"),
    "select": ("--builtin=select-only", "--protocol=prepared"),
    "analytic": (f"--file={FOLDER / 'analytic.sql'}",),
    "dashboard": (f"--file={FOLDER / 'dashboard.sql'}",),
}
SAMPLE_SECONDS = 0.3
CRASH_AFTER = 200  # transactions
CRASH_SECONDS = 60
WRONG, MACHINE = 1, 3


def prepare(folder: Path, scale: int) -> None:
    """Fill a cluster with pgbench's tables, 100,000 accounts for each unit of the scale, and save it."""
    with temporary() as cluster:
        cluster.create()
        # what makes loading fast; no later start of the cluster has these settings
        cluster.start({"max_wal_size": "4GB", "maintenance_work_mem": "256MB"})
        command = [*cluster.client("pgbench"), "--initialize", "--quiet", f"--scale={scale}", "postgres"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MachineError(f"pgbench cannot fill the database: {done.stderr[-500:]}")
        cluster.query("vacuum (freeze, analyze)")
        cluster.query("checkpoint")
        cluster.stop()
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / "cluster.part"
        cluster.save(part)
        part.rename(folder / "cluster.tar")


def measure(cluster: Cluster, load: str, clients: int, seconds: float, warm_up: float) -> dict[str, float]:
    """Run a load on a running server; return transactions a second, milliseconds and MiB. Raise ClusterError."""
    if warm_up > 0:
        run_pgbench(cluster, load, clients, warm_up)
    peak, over = [cluster.memory_bytes()], threading.Event()
    cluster.query("checkpoint")  # each load begins with the pages that a checkpoint makes the log hold whole
    spent, logged = cluster.cpu_seconds(), log_position(cluster)

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS):
            peak.append(cluster.memory_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        latencies, took = run_pgbench(cluster, load, clients, seconds)
    finally:
        over.set()
        watcher.join()
    spent, logged = cluster.cpu_seconds() - spent, log_position(cluster) - logged
    check(cluster)
    return {
        "cpu_us": 1e6 * spent / len(latencies),
        "wal_bytes": logged / len(latencies),
        "tps": len(latencies) / took,
        "mean_ms": statistics.fmean(latencies),
        "p95_ms": latencies[int(0.95 * (len(latencies) - 1))],
        "memory_mib": max(peak) / (1 << 20),
    }


def log_position(cluster: Cluster) -> int:
    """Return the bytes that the cluster has written to its write-ahead log since it was made."""
    return int(cluster.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0])


def check(cluster: Cluster) -> None:
    """Raise ClusterError if the balances of accounts, branches, tellers and history do not agree."""
    [row] = cluster.query(
        "select coalesce(sum(delta), 0), (select sum(abalance) from pgbench_accounts), (select sum(bbalance)"
        " from pgbench_branches), (select sum(tbalance) from pgbench_tellers) from pgbench_history"
    )
    sums = row.split("|")
    if len(set(sums)) > 1:
        raise ClusterError(f"the balances differ: {sums}")


def run_pgbench(cluster: Cluster, load: str, clients: int, seconds: float) -> tuple[list[float], float]:
    """Run a load; return the sorted latencies of its transactions in ms, and its duration in s. Raise ClusterError."""
    command = pgbench(cluster, load, clients, seconds)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"pgbench ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    # client, number, microseconds, script, end in seconds and microseconds
    rows = [line.split() for line in acknowledged(cluster)]
    if not rows:
        raise ClusterError(f"no transaction ended within {seconds:g} s")
    ends = [int(row[4]) + int(row[5]) / 1e6 for row in rows]
    begins = [end - int(row[2]) / 1e6 for end, row in zip(ends, rows, strict=True)]
    return sorted(int(row[2]) / 1000 for row in rows), max(ends) - min(begins)


def pgbench(cluster: Cluster, load: str, clients: int, seconds: float) -> list[str]:
    """Return pgbench's command for a load, and remove the log of the previous one."""
    for file in cluster.folder.glob("log.*"):
        file.unlink()
    command = [*cluster.client("pgbench"), *LOADS[load], f"--client={clients}", "--jobs=1", "--no-vacuum"]
    return [*command, f"--time={max(round(seconds), 1)}", "--log", f"--log-prefix={cluster.folder / 'log'}", "postgres"]


def acknowledged(cluster: Cluster) -> list[str]:
    """Return pgbench's log: a line for each transaction that the server has acknowledged."""
    return [line for file in cluster.folder.glob("log.*") for line in file.read_text().splitlines()]


def crash(cluster: Cluster, settings: Mapping[str, object], clients: int) -> dict[str, int]:
    """Kill a running server under load, and start it again; return the numbers of transactions. Raise ClusterError."""
    command = pgbench(cluster, "tpcb", clients, CRASH_SECONDS)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        while load.poll() is None and int(cluster.query("select count(*) from pgbench_history")[0]) < CRASH_AFTER:
            time.sleep(0.05)
        if load.poll() is not None:
            raise ClusterError("pgbench ended before the crash")
        cluster.kill()
    cluster.start(settings)
    count = int(cluster.query("select count(*) from pgbench_history")[0])
    found = {"acknowledged": len(acknowledged(cluster)), "found": count}
    if found["found"] < found["acknowledged"]:
        raise ClusterError(f"the crash has lost transactions: {found}")
    check(cluster)
    return found


def settings_of(words: Sequence[str]) -> dict[str, object]:
    """Return the settings in words such as `work_mem=4096`. Raise ClusterError for another word."""
    found: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.replace("_", "").isalnum() or "'" in value:
            raise ClusterError(f"--set: {word!r} is not allowed. Use NAME=VALUE without quotation marks.")
        found[name] = value
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "crash", *LOADS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=10, help="of pgbench's tables, 15 MB each (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=3, help="of the load (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=1, help="seconds before it (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the server")
    options = parser.parse_args()
    try:
        if options.what == "prepare":
            prepare(options.folder, options.scale)
            return 0
        with temporary() as cluster:
            cluster.restore(options.folder / "cluster.tar")
            settings = settings_of(options.set)
            cluster.start(settings)
            if options.what == "crash":
                print(json.dumps(crash(cluster, settings, options.clients)))
            else:
                print(json.dumps(measure(cluster, options.what, options.clients, options.seconds, options.warm_up)))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG
    except MachineError as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    return 0


if __name__ == "__main__":
    sys.exit(main())
