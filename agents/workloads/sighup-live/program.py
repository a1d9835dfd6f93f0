"""An example of a program whose settings a file has: a queue whose latency depends on them.

    program.py NAME [--folder /run/trimtab]

It reads NAME.json at its start and at SIGHUP, first in /var/lib/trimtab (or SIGHUP_LIVE_KEPT). It writes NAME.status
twice a second: its settings, its latency, and how many requests it has answered. The best settings are about 16 workers
and batches of 64; one worker is a trap.
"""

import argparse
import json
import math
import os
import random
import signal
import threading
import time
from pathlib import Path

KEPT = Path(os.environ.get("SIGHUP_LIVE_KEPT", "/var/lib/trimtab"))
OWN = {"workers": 4, "batch": 16}
SLOW_MS = 50.0


class Program:
    """The settings in force, and what was answered with them."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.files = [KEPT / f"{name}.json", folder / f"{name}.json"]
        self.status = folder / f"{name}.status"
        self.settings = dict(OWN)
        self.requests = self.slow = 0
        self.hangup = threading.Event()
        self.hangup.set()
        signal.signal(signal.SIGHUP, lambda *_: self.hangup.set())
        (folder / f"{name}.pid").write_text(str(os.getpid()))

    def run(self) -> None:
        """Answer requests until the process is ended."""
        began = time.monotonic()
        while True:
            if self.hangup.is_set():
                self.hangup.clear()
                self.settings = dict(OWN)
                for file in self.files:
                    self.settings |= json.loads(file.read_text()) if file.exists() else {}
            # The load is a wave of ten minutes with noise.
            load = 1 + 0.3 * math.sin((time.monotonic() - began) / 95) + random.gauss(0, 0.03)
            latency = self.latency() * load
            self.requests += 50
            self.slow += sum(random.expovariate(1 / latency) > SLOW_MS for _ in range(50))
            told = {"settings": self.settings, "latency_ms": latency, "requests": self.requests, "slow": self.slow}
            new = self.status.with_suffix(".new")
            new.write_text(json.dumps(told))
            new.replace(self.status)
            self.hangup.wait(0.5)

    def latency(self) -> float:
        """Return the mean latency in milliseconds without the wave of the load."""
        workers, batch = float(self.settings["workers"]), float(self.settings["batch"])
        return 8 + abs(math.log2(workers / 16)) ** 2 + abs(math.log2(batch / 64)) + (60 if workers < 2 else 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("SIGHUP_LIVE_RUN", "/run/trimtab")))
    options = parser.parse_args()
    Program(options.name, options.folder).run()


if __name__ == "__main__":
    main()
