"""Apply settings to a running Redis server, take them back, show them, and read its latency, with redis-cli.

    switch.py apply|revert|verify|keep|stats HOST-PORT

The values before the first `apply` are kept in a file next to those of other instances in /run/trimtab (or in
REDIS_LIVE_RUN), which is empty after a boot. A server that was restarted has the values of its own file again. `keep`
has the server write its file (CONFIG REWRITE).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

RUN = Path(os.environ.get("REDIS_LIVE_RUN", "/run/trimtab"))
NAMES = (
    *("hz", "maxmemory-samples", "hash-max-listpack-entries", "list-max-listpack-size"),
    *("activerehashing", "lazyfree-lazy-user-del"),
)
SWITCHES = {"yes": True, "no": False}
PROBES = 20


def main() -> None:
    """Do what the command line asks for."""
    action, instance = sys.argv[1:]
    host, _, port = instance.rpartition("-")
    redis = ["redis-cli", "-h", host, "-p", port]
    before = RUN / f"redis-{instance}.json"
    if action == "apply":
        wanted = json.load(sys.stdin)
        if not before.exists():
            RUN.mkdir(parents=True, exist_ok=True)
            new = before.with_suffix(".new")
            new.write_text(json.dumps(shown(redis)))
            new.replace(before)
        put(redis, wanted)
    elif action == "revert":
        if before.exists():
            put(redis, json.loads(before.read_text()))
            before.unlink()
    elif action == "keep":
        put(redis, json.load(sys.stdin))
        answer = call(redis, "CONFIG", "REWRITE")
        if answer.strip() != "OK":
            sys.exit(f"CONFIG REWRITE: {answer.strip()[:200]}")
        before.unlink(missing_ok=True)
    elif action == "verify":
        print(json.dumps(shown(redis)))
    else:
        began = time.perf_counter()
        asked = subprocess.run(
            [*redis, "-r", str(PROBES), "PING"], capture_output=True, text=True, timeout=5, check=True
        )
        took = time.perf_counter() - began
        if asked.stdout.split() != ["PONG"] * PROBES:
            sys.exit(f"PING: {asked.stdout[:200]}")
        info = call(redis, "INFO", "stats")
        commands = next(line.split(":")[1] for line in info.splitlines() if line.startswith("total_commands_processed"))
        print(json.dumps({"latency_us": 1e6 * took / PROBES, "commands": int(commands)}))


def shown(redis: list[str]) -> dict[str, object]:
    """Return the settings in force."""
    lines = call(redis, "CONFIG", "GET", *NAMES).split("\n")
    found = dict(zip(lines[::2], lines[1::2], strict=False))
    return {name: SWITCHES.get(found[name], found[name]) for name in NAMES if name in found}


def put(redis: list[str], wanted: dict[str, object]) -> None:
    """Apply all settings at once: Redis takes all of them or none."""
    texts = {True: "yes", False: "no"}
    pairs = [
        text
        for name, value in wanted.items()
        for text in (name, texts[value] if isinstance(value, bool) else str(value))
    ]
    answer = call(redis, "CONFIG", "SET", *pairs)
    if answer.strip() != "OK":
        sys.exit(f"CONFIG SET: {answer.strip()[:200]}")


def call(redis: list[str], *words: str) -> str:
    """Return the answer of the server."""
    return subprocess.run([*redis, *words], capture_output=True, text=True, timeout=5, check=True).stdout


if __name__ == "__main__":
    main()
