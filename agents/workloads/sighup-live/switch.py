"""Apply settings to a program that reads a file on SIGHUP, take them back, and show what the program says.

    switch.py apply|revert|verify|keep|status NAME

The files are in /run/trimtab (or in SIGHUP_LIVE_RUN), which is empty after a boot. `keep` writes settings that stay
into /var/lib/trimtab (or SIGHUP_LIVE_KEPT).
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

RUN = Path(os.environ.get("SIGHUP_LIVE_RUN", "/run/trimtab"))
KEPT = Path(os.environ.get("SIGHUP_LIVE_KEPT", "/var/lib/trimtab"))


def main() -> None:
    """Do what the command line asks for."""
    action, name = sys.argv[1:]
    settings = RUN / f"{name}.json"
    if action in ("apply", "keep"):
        file = settings if action == "apply" else KEPT / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(json.load(sys.stdin)))
        new.replace(file)
        os.kill(number(name), signal.SIGHUP)
    elif action == "revert":
        settings.unlink(missing_ok=True)
        # A program that does not run starts with its own settings.
        with suppress(ProcessLookupError):
            os.kill(number(name), signal.SIGHUP)
    else:
        os.kill(number(name), 0)
        told = json.loads((RUN / f"{name}.status").read_text())
        print(json.dumps(told["settings"] if action == "verify" else told))


def number(name: str) -> int:
    """Return the number of the program's process."""
    return int((RUN / f"{name}.pid").read_text())


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
