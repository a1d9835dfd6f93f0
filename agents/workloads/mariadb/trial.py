"""Load a MariaDB with these settings by sysbench, check its data, and print what was measured as JSON.

    python3 trial.py prepare FOLDER                               once: a data folder with two tables, 0.3 GB
    python3 trial.py point_select|read_write FOLDER [NAME=VALUE ...]
    python3 trial.py crash FOLDER [NAME=VALUE ...]                kills the server under load, and looks for lost rows

Each trial has a copy of the data folder. Settings are variables of the server. What makes changes durable is never
tuned: the log is written and synchronised at each commit, and pages are written twice.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

TABLES, ROWS, THREADS, SECONDS, WARM_UP = 2, 600_000, 4, 6, 2
PACKAGES = "the Debian packages mariadb-server and sysbench"
DURABLE = ("innodb_flush_log_at_trx_commit=1", "innodb_doublewrite=1", "sync_binlog=1")
CRASH_AFTER = 300  # changes


class MariaDB:
    """A server on a data folder, whose path must be short."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "socket"

    def run(self, settings: dict[str, str]) -> "bench.contextlib.AbstractContextManager[bench.Server]":
        """Return the running server."""
        self.socket.unlink(missing_ok=True)
        command = [bench.program("mariadbd", PACKAGES), "--no-defaults", "--user=root", "--skip-networking"]
        command += [f"--datadir={self.folder / 'data'}", f"--socket={self.socket}", f"--pid-file={self.folder / 'pid'}"]
        command += [f"--{one}" for one in DURABLE] + [f"--{name}={value}" for name, value in settings.items()]
        return bench.server(command, ready=lambda: bench.listens(self.socket))

    def query(self, text: str) -> list[list[str]]:
        """Return the rows of a query."""
        client = [bench.program("mariadb", PACKAGES), "--no-defaults", "--user=root", f"--socket={self.socket}"]
        said = bench.run([*client, "--batch", "--skip-column-names", f"--execute={text}"]).output.decode()
        return [line.split("\t") for line in said.splitlines()]

    def sysbench(self, load: str, action: str, *more: str) -> str:
        """Return what sysbench prints."""
        command = [bench.program("sysbench", PACKAGES), f"oltp_{load}", f"--mysql-socket={self.socket}"]
        command += ["--mysql-user=root", f"--tables={TABLES}", f"--table-size={ROWS}", "--rand-type=pareto", *more]
        return bench.run([*command, action]).output.decode()


def prepare(folder: Path) -> None:
    """Make a data folder with sysbench's tables."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "data.part"
    install = [bench.program("mariadb-install-db", PACKAGES), "--no-defaults", "--user=root", f"--datadir={part}"]
    bench.run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
    with tempfile.TemporaryDirectory(prefix="mariadb-") as place:
        database = MariaDB(Path(place))
        (database.folder / "data").symlink_to(part.absolute())
        with database.run({"innodb_buffer_pool_size": "512M", "innodb_fast_shutdown": "0"}):
            database.query("create database sbtest")
            database.sysbench("read_write", "prepare", "--rand-seed=1")
            database.query("create table sbtest.told (number int primary key auto_increment, at double)")
    part.rename(folder / "data")


def load(database: MariaDB, server: bench.Server, name: str) -> dict[str, float]:
    """Run a load of sysbench, and check the tables."""
    options = (f"--threads={THREADS}", "--rand-seed=2", "--percentile=95")
    database.sysbench(name, "run", *options, f"--time={WARM_UP}")
    before = server.cpu_seconds()
    said = database.sysbench(name, "run", *options, f"--time={SECONDS}")
    spent = server.cpu_seconds() - before
    check(database)
    count = int(re.search(r"total number of events: +(\d+)", said)[1])
    ignored = int(re.search(r"ignored errors: +(\d+)", said)[1])
    return {
        "cpu_us": 1e6 * spent / count,
        "tps": count / float(re.search(r"total time: +([\d.]+)s", said)[1]),
        "p95_ms": float(re.search(r"95th percentile: +([\d.]+)", said)[1]),
        "ignored_errors": ignored,
        "memory_mib": server.peak_memory() / (1 << 20),
    }


def check(database: MariaDB) -> None:
    """Raise WrongError unless each table has all its rows: sysbench inserts again what it deletes."""
    for number in range(1, TABLES + 1):
        bench.expect(
            database.query(f"select count(*) from sbtest.sbtest{number}"),
            [[str(ROWS)]],
            f"the number of rows of table {number}",
        )


def crash(database: MariaDB, settings: dict[str, str]) -> dict[str, float]:
    """Kill the server while a client inserts rows, and look for each row that was acknowledged."""
    insert = "insert into sbtest.told (at) values (now(6)); select max(number) from sbtest.told;\n"
    client = [bench.program("mariadb", PACKAGES), "--no-defaults", "--user=root", f"--socket={database.socket}"]
    client += ["--batch", "--skip-column-names", "--unbuffered"]
    acknowledged = 0
    with (
        database.run(settings) as server,
        subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer,
    ):
        while acknowledged < CRASH_AFTER:
            writer.stdin.write(insert.encode())
            writer.stdin.flush()
            acknowledged = int(writer.stdout.readline())
        server.kill()
    with database.run(settings):
        [[found]] = database.query("select count(*) from sbtest.told")
        check(database)
    if int(found) < acknowledged:
        raise bench.WrongError(f"the crash has lost rows: {found} of {acknowledged} are there")
    return {"acknowledged": acknowledged, "found": int(found)}


def measure() -> dict[str, float]:
    """Run the load that the first argument names on a copy of the data folder."""
    name, settings = sys.argv[1], bench.settings()
    with tempfile.TemporaryDirectory(prefix="mariadb-") as place:
        database = MariaDB(Path(place))
        bench.restore(Path(sys.argv[2]) / "data", database.folder / "data")
        os.sync()  # the copy does not slow the load down
        if name == "crash":
            return crash(database, settings)
        with database.run(settings) as server:
            return load(database, server, name)


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
    else:
        bench.main(measure)
