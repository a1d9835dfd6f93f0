"""Run a load on an SQLite database with these settings, check its answers, and print what was measured as JSON.

    python3 trial.py prepare FOLDER                      once: a database of 400,000 rows
    python3 trial.py LOAD FILE [NAME=VALUE ...]          on the database FILE, which it changes
    python3 trial.py crash FILE [NAME=VALUE ...]         kills the load `write`, and looks for lost transactions

`write` changes six rows in each of 300 transactions, all durable: `synchronous` is FULL. `read` looks 40,000 rows up by
their key, and 400 ranges. `write-more` and `read-ranges` are other loads, on which a recommendation can be measured
that was found on the first ones. Settings are pragmas, with `locking_mode` and `wal_autocheckpoint`.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

ROWS, SEED, RANGE = 400_000, 1, 100


@dataclass(frozen=True)
class Load:
    """Transactions that write, with their changes of rows; and rows that are looked up, alone and in ranges."""

    transactions: int = 0
    changes: int = 0
    look_ups: int = 0
    ranges: int = 0
    seed: int = SEED


LOADS = {
    "write": Load(300, 6),
    "write-more": Load(150, 30, seed=2),
    "read": Load(look_ups=40_000, ranges=400),
    "read-ranges": Load(look_ups=5_000, ranges=4_000, seed=2),
}
# Sums of all balances and of the numbers of all rows, which no load changes.
TOTAL = ROWS * 1000


def prepare(folder: Path) -> None:
    """Fill a database, and leave it without a journal."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "part.db"
    part.unlink(missing_ok=True)
    draw = random.Random(SEED)
    with sqlite3.connect(part) as database:
        database.execute("create table account (id integer primary key, balance integer, owner text, note text)")
        rows = ((row, 1000, f"owner {draw.randrange(10**6)}", "n" * draw.randrange(50, 250)) for row in range(ROWS))
        database.executemany("insert into account values (?, ?, ?, ?)", rows)
    database.close()
    part.rename(folder / "accounts.db")


def opened(path: Path, settings: dict[str, str]) -> sqlite3.Connection:
    """Return a connection with the settings. Raise WrongError if SQLite does not take one."""
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    database.execute("pragma synchronous = full")
    for name in ("locking_mode", "journal_mode", *sorted(set(settings) - {"locking_mode", "journal_mode"})):
        if name not in settings:
            continue
        database.execute(f"pragma {name} = {settings[name]}").fetchall()
        [found] = database.execute(f"pragma {name}").fetchone() or [None]
        bench.expect(str(found).lower(), settings[name].lower(), f"pragma {name}")
    return database


def write(database: sqlite3.Connection, load: Load, told: object = None) -> None:
    """Move money between accounts in durable transactions. The number of each that has ended goes to `told`."""
    draw = random.Random(load.seed)
    for number in range(load.transactions):
        database.execute("begin immediate")
        for _ in range(load.changes // 2):
            amount = draw.randrange(100)
            for change in (amount, -amount):
                row = draw.randrange(ROWS)
                database.execute("update account set balance = balance + ? where id = ?", (change, row))
        database.execute("update account set note = ? where id = 0", (f"transaction {number}",))
        database.execute("commit")
        if told is not None:
            print(number, file=told, flush=True)


def read(database: sqlite3.Connection, load: Load) -> int:
    """Look rows up; return the sum of what was found."""
    draw = random.Random(load.seed)
    found = 0
    for _ in range(load.look_ups):
        row = min(int(draw.paretovariate(0.6)) - 1, ROWS - 1) * 7919 % ROWS
        found += database.execute("select balance from account where id = ?", (row,)).fetchone()[0]
    for _ in range(load.ranges):
        row = draw.randrange(ROWS - RANGE)
        query = "select sum(balance), count(*) from account where id >= ? and id < ?"
        found += database.execute(query, (row, row + RANGE)).fetchone()[0]
    return found


def crash(path: Path, settings: dict[str, str]) -> dict[str, float]:
    """Kill a process that writes; return the numbers of transactions that it had acknowledged, and that are there."""
    command = [sys.executable, __file__, "writer", str(path), *(f"{name}={value}" for name, value in settings.items())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged == LOADS["write"].transactions // 3:
                writer.send_signal(signal.SIGKILL)
    database = opened(path, {})
    check(database)
    note = database.execute("select note from account where id = 0").fetchone()[0]
    found = int(note.split()[-1])
    if found < acknowledged:
        raise bench.WrongError(f"the crash has lost transactions: {found} of {acknowledged} are there")
    return {"acknowledged": acknowledged + 1, "found": found + 1}


def check(database: sqlite3.Connection) -> None:
    """Raise WrongError unless the database is sound, and no money is lost."""
    bench.expect(database.execute("pragma quick_check").fetchone()[0], "ok", "pragma quick_check")
    bench.expect(database.execute("select sum(balance) from account").fetchone()[0], TOTAL, "the sum of all balances")


def given_bytes() -> int:
    """Return the bytes that this process has given to the kernel to write."""
    return int(Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0])


def measure() -> dict[str, float]:
    """Run the load that the first argument names."""
    name, path, settings = sys.argv[1], Path(sys.argv[2]), bench.settings()
    if name == "crash":
        return crash(path, settings)
    load = LOADS["write" if name == "writer" else name]
    os.sync()  # what was written before does not slow this load down
    began, cpu, given = time.perf_counter(), time.process_time(), given_bytes()
    database = opened(path, settings)
    if load.transactions:
        write(database, load, sys.stdout if name == "writer" else None)
    else:
        wanted = (load.look_ups + load.ranges * RANGE) * 1000
        bench.expect(read(database, load), wanted, "the sum of the rows that were read")
    database.close()
    result = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    result["written_mib"] = (given_bytes() - given) / (1 << 20)
    with sqlite3.connect(path) as again:
        check(again)
    return result


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
    else:
        bench.main(measure)
