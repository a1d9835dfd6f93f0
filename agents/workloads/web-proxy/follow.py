"""The two commands by which `trimtab follow` steers a running proxy.

`context` prints the limit of the proxy's cache, and how many processes of the machine can run for each processor, the
mean over a second. `apply` reads the settings for this context from standard input, and gives them to the proxy through
its control socket.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from trial import TrialError, asked  # next to this file

EXAMPLE = """\
example:
  trimtab follow proxy-context --context-command "python3 follow.py context CONTROL" \\
      --apply-command "python3 follow.py apply CONTROL"
"""
READINGS, PAUSE_SECONDS = 20, 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if the proxy cannot be reached or refuses the settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("context", "apply"))
    parser.add_argument("control", type=Path, help="the proxy's control socket")
    options = parser.parse_args(argv)
    try:
        if options.action == "context":
            size = asked(options.control, "get")["cache-bytes"]
            print(json.dumps({"cache-bytes": size, "background": others() / (os.cpu_count() or 1)}))
        else:
            settings = json.load(sys.stdin)["settings"]
            asked(options.control, " ".join(["set", *(f"{name}={value}" for name, value in settings.items())]))
    except (TrialError, OSError, ValueError, KeyError) as error:
        print(f"error: the proxy at {options.control}: {error}", file=sys.stderr)
        return 1
    return 0


def others() -> float:
    """Return the mean number of runnable processes, without this one."""
    found = []
    for _ in range(READINGS):
        runnable, _, _ = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")
        found.append(int(runnable) - 1)
        time.sleep(PAUSE_SECONDS)
    return sum(found) / READINGS


if __name__ == "__main__":
    sys.exit(main())
