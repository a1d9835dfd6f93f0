"""The program uv, which makes environments for the packages of others."""

import shutil
from pathlib import Path


def uv() -> str:
    """Return its path. Raise RuntimeError if it is not there."""
    own = Path(__file__).resolve().parents[2] / ".cache" / "uv" / "bin" / "uv"
    found = shutil.which("uv") or (str(own) if own.exists() else None)
    if found is None:
        raise RuntimeError("The program needs uv, which makes an environment for it.")
    return found
