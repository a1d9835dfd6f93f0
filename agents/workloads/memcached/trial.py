"""Load a new memcached with these settings, check every value, and print what was measured as JSON.

    python3 trial.py [NAME=VALUE ...]

The items have 20 bytes to 60 kB, and more of them than the cache of 16 MB can hold. Keys are drawn by Zipf's law; a
miss stores the item. A setting that is a letter is an option of memcached; the others are those of its option -o.
"""

import math
import random
import socket
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

MEBIBYTES, ITEMS, EXPONENT, LOOK_UPS, SEED = 32, 100_000, 0.9, 120_000, 1
SMALLEST, LARGEST = 20, 60_000
BATCH = 50


def sizes() -> list[int]:
    """Return the size of each item: most are small, and some are large."""
    draw = random.Random(SEED)
    spread = math.log(LARGEST / SMALLEST)
    return [round(SMALLEST * math.exp(spread * draw.betavariate(1.5, 3))) for _ in range(ITEMS)]


def measure() -> dict[str, float]:
    """Start a server, and look items up."""
    with tempfile.TemporaryDirectory(prefix="memcached-") as folder:
        path = Path(folder) / "socket"
        command = [bench.program("memcached", "the Debian package memcached"), "-u", "root", "-s", path]
        command += ["-m", str(MEBIBYTES), "-t", "1", "-U", "0"]
        given = bench.settings()
        for name in [name for name in given if len(name) == 1]:
            command += [f"-{name}", given.pop(name)]
        if given:
            command += ["-o", ",".join(f"{name}={value}" for name, value in given.items())]
        with bench.server(command, ready=lambda: bench.listens(path)) as server:
            return load(path, server)


def load(path: Path, server: bench.Server) -> dict[str, float]:
    """Look items up, and store those that are missing."""
    size = sizes()
    keys = bench.zipf(ITEMS, EXPONENT, SEED)
    hits = refused = 0
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        answers = link.makefile("rb")
        before = server.cpu_seconds()
        for _ in range(LOOK_UPS // BATCH):
            asked = [next(keys) for _ in range(BATCH)]
            link.sendall(b"get " + b" ".join(b"item:%d" % one for one in asked) + b"\r\n")
            found = set()
            while (line := answers.readline()) != b"END\r\n":
                words = line.split()
                if words[:1] != [b"VALUE"]:
                    raise bench.WrongError(f"memcached answers {line[:100]!r}")
                item = int(words[1].removeprefix(b"item:"))
                bench.expect(answers.read(int(words[3]) + 2)[:-2] == value(item, size[item]), True, f"item {item}")
                found.add(item)
            hits += sum(one in found for one in asked)
            missing = sorted(set(asked) - found)
            for item in missing:
                link.sendall(b"set item:%d 0 0 %d\r\n%b\r\n" % (item, size[item], value(item, size[item])))
            refused += sum(answers.readline() != b"STORED\r\n" for _ in missing)
        spent = server.cpu_seconds() - before
    if refused:
        raise bench.WrongError(f"memcached has refused to store {refused} items")
    return {
        "hit_ratio": hits / LOOK_UPS,
        "misses": LOOK_UPS - hits,
        "cpu_us": 1e6 * spent / LOOK_UPS,
        "memory_mib": server.peak_memory() / (1 << 20),
    }


def value(item: int, size: int) -> bytes:
    """Return the value of an item."""
    return (b"%d," % item * (size // 2 + 1))[:size]


if __name__ == "__main__":
    bench.main(measure)
