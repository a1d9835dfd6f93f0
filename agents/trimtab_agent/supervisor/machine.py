"""A description of the machine where a trial ran: processor, kernel and compiler, on which good settings depend."""

import os
import subprocess
from collections.abc import Mapping

# Seconds within which a compiler must print its version.
_PATIENCE = 5.0


def describe(compiler: str = "", environment: Mapping[str, str] | None = None, place: str = "/") -> str:
    """Return the processor, the kernel and the first line of `compiler --version`; unknown parts are left out."""
    system = os.uname()
    parts = [_processor(place), f"{system.sysname} {system.release} {system.machine}"]
    if compiler:
        parts.append(_version(compiler, environment))
    return ", ".join(part for part in parts if part)


def _processor(place: str) -> str:
    try:
        with open(os.path.join(place, "proc/cpuinfo"), encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "Model", "cpu model"):
                    return " ".join(value.split())
    except OSError:
        pass
    return ""


def _version(compiler: str, environment: Mapping[str, str] | None) -> str:
    try:
        done = subprocess.run(
            [compiler, "--version"], env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""
