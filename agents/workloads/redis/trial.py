"""Run a load on a new Redis server with these settings, check its answers, and print what was measured as JSON.

    python3 trial.py structures|structures-long|cache|cache-large [NAME=VALUE ...]

`structures`: hashes and sorted sets of 20 to 1,500 entries are filled, then read and counted up. `cache`: a cache of
6 MB answers look-ups of keys by Zipf's law, and every tenth one by a scan; a miss stores the key. `structures-long` and
`cache-large` are other data, on which a recommendation can be measured that was found on the first ones. Settings are
those of CONFIG SET.
"""

import random
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

OPERATIONS, LOOK_UPS = 40_000, 60_000


@dataclass(frozen=True)
class Structures:
    """Numbers of hashes and of sorted sets, and of the entries of the smallest and the largest one."""

    hashes: int
    sets: int
    smallest: int
    largest: int
    seed: int


@dataclass(frozen=True)
class Cache:
    """The size of a cache, the keys that are asked for with the exponent of Zipf's law, and the keys of a scan."""

    size: int
    keys: int
    exponent: float
    scanned: int
    seed: int


LOADS = {
    "structures": Structures(400, 400, 20, 1500, 1),
    "structures-long": Structures(60, 90, 100, 6000, 2),
    "cache": Cache(6 << 20, 40_000, 0.9, 20_000, 1),
    "cache-large": Cache(12 << 20, 60_000, 0.8, 10_000, 2),
}
# Commands that are sent before their answers are read.
BATCH = 100


class Redis:
    """A connection to a server."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rb")

    def many(self, commands: Sequence[Sequence[object]]) -> list[object]:
        """Send commands at once, and return their answers. Raise WrongError for an error."""
        parts = []
        for command in commands:
            words = [str(word).encode() for word in command]
            parts.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self._socket.sendall(b"".join(parts))
        answers = [self._answer() for _ in commands]
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, bench.WrongError):
                raise bench.WrongError(f"{' '.join(map(str, command))[:100]}: {answer}")
        return answers

    def one(self, *command: object) -> object:
        """Send one command, and return its answer."""
        return self.many([command])[0]

    def info(self, section: str, name: str) -> int:
        """Return a number of INFO."""
        text = self.one("INFO", section)
        assert isinstance(text, bytes)
        return int(text.split(f"\r\n{name}:".encode())[1].split(b"\r\n")[0])

    def _answer(self) -> object:
        line = self._file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self._file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        if kind == b"-":
            return bench.WrongError(rest.decode())
        return int(rest) if kind == b":" else rest


def structures(redis: Redis, server: bench.Server, load: Structures) -> dict[str, float]:
    """Fill hashes and sorted sets, use them, and compare every answer with what a dictionary says."""
    draw = random.Random(load.seed)
    empty = redis.info("memory", "used_memory")
    model: dict[str, dict[str, int]] = {}
    for number in range(load.hashes + load.sets):
        of_hash = number < load.hashes
        key = f"{'hash' if of_hash else 'set'}:{number}"
        entries = round(load.smallest * (load.largest / load.smallest) ** draw.random())
        model[key] = {f"field-{draw.randrange(10**6):06}": draw.randrange(1000) for _ in range(entries)}
        put = "HSET" if of_hash else "ZADD"
        pairs = model[key].items()
        words = [word for name, value in pairs for word in ((name, value) if of_hash else (value, name))]
        redis.one(put, key, *words)
    filled = redis.info("memory", "used_memory")
    before = server.cpu_seconds()
    keys = list(model)
    fields = {key: list(values) for key, values in model.items()}
    for batch in range(OPERATIONS // BATCH):
        commands, wanted = [], []
        for place in range(BATCH):
            key = draw.choice(keys)
            field = draw.choice(fields[key])
            of_hash = key.startswith("hash")
            if place % 4 == 0:
                commands.append(("HINCRBY", key, field, 1) if of_hash else ("ZINCRBY", key, 1, field))
                model[key][field] += 1
                wanted.append(model[key][field])
            else:
                commands.append(("HGET" if of_hash else "ZSCORE", key, field))
                wanted.append(model[key][field])
        bench.expect([int(found) for found in redis.many(commands)], wanted, f"the answers of batch {batch}")
    spent = server.cpu_seconds() - before
    for key in keys[:: len(keys) // 20]:
        count = redis.one("HLEN" if key.startswith("hash") else "ZCARD", key)
        bench.expect(count, len(model[key]), f"the number of entries of {key}")
    return {"data_mib": (filled - empty) / (1 << 20), "cpu_us": 1e6 * spent / OPERATIONS}


def cache(redis: Redis, server: bench.Server, load: Cache) -> dict[str, float]:
    """Look keys up, and store those that are missing; compare each value that is found with the stored one."""
    redis.one("CONFIG", "SET", "maxmemory", load.size)
    asked = _asked(load)
    hits = 0
    before = server.cpu_seconds()
    for _ in range(LOOK_UPS // BATCH):
        keys = [next(asked) for _ in range(BATCH)]
        found = redis.many([("GET", key) for key in keys])
        missing = []
        for key, value in zip(keys, found, strict=True):
            if value is None:
                missing.append(("SET", key, _value(key)))
            else:
                hits += 1
                bench.expect(value, _value(key).encode(), f"the value of {key}")
        if missing:
            redis.many(missing)
    spent = server.cpu_seconds() - before
    return {"hit_ratio": hits / LOOK_UPS, "misses": LOOK_UPS - hits, "cpu_us": 1e6 * spent / LOOK_UPS}


def _asked(load: Cache) -> Iterator[str]:
    drawn, scanned = bench.zipf(load.keys, load.exponent, load.seed), 0
    while True:
        for _ in range(9):
            yield f"key:{next(drawn)}"
        yield f"scan:{scanned % load.scanned}"
        scanned += 1


def _value(key: str) -> str:
    """Return the value of a key: 100 to 500 bytes."""
    return (key + ".") * (100 // len(key) + len(key) * 7919 % 40)


def measure() -> dict[str, float]:
    """Start a server, and run the load that the first argument names."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        path = Path(folder) / "socket"
        given = [word for name, value in bench.settings().items() for word in (f"--{name}", value)]
        command = [
            bench.program("redis-server", "the Debian package redis-server"),
            "--port",
            "0",
            "--unixsocket",
            path,
        ]
        # no copies on the disk, and no tasks that depend on the time
        command += ["--save", "", "--appendonly", "no", "--dir", folder, "--activerehashing", "no", *given]
        with bench.server(command, ready=lambda: bench.listens(path)) as server:
            load = LOADS[sys.argv[1]]
            if isinstance(load, Cache):
                return cache(Redis(path), server, load)
            return structures(Redis(path), server, load)


if __name__ == "__main__":
    bench.main(measure)
