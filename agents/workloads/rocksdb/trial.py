"""Fill a RocksDB database with these settings, read it in a second process, and print what was measured as JSON.

    python3 trial.py [NAME=VALUE ...]

db_bench writes 400,000 rows in random order and compacts them. Another process reads 100,000 keys that are there, since
it draws them by the same seed, and 100,000 keys that are missing. Settings are options of db_bench.
"""

import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

ROWS, READS, SEED = 400_000, 100_000, 7
# The write-ahead log and the checks of blocks are on, as in every default.
FIXED = ("--disable_wal=0", "--verify_checksum=1", "--compression_ratio=0.5", "--threads=1", f"--seed={SEED}")


def measure() -> dict[str, float]:
    """Fill a database, and read it."""
    program = bench.program("db_bench", "the Debian package rocksdb-tools")
    given = [f"--{name}={value}" for name, value in bench.settings().items()]
    with tempfile.TemporaryDirectory(prefix="rocksdb-", dir=".") as folder:
        # --num is the range of keys also of the reader
        command = [program, f"--db={folder}", f"--num={ROWS}", *FIXED, *given]
        filling = bench.run([*command, "--benchmarks=fillrandom,compact"])
        size = sum(file.stat().st_size for file in Path(folder).glob("*.sst"))
        again = [*command, "--use_existing_db=1", f"--reads={READS}"]
        reading = bench.run([*again, "--benchmarks=readrandom,readmissing"])
        said = reading.output.decode()
    found = {name: int(count) for name, count in re.findall(r"^(read\w+) .*\((\d+) of \d+ found\)", said, re.MULTILINE)}
    bench.expect(found, {"readrandom": READS, "readmissing": 0}, "the numbers of keys that were found")
    return {
        "cpu_us": 1e6 * reading.cpu_seconds / (2 * READS),
        "fill_cpu_us": 1e6 * filling.cpu_seconds / ROWS,
        "size_mib": size / (1 << 20),
    }


if __name__ == "__main__":
    bench.main(measure)
