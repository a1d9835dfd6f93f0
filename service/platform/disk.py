"""The disk of a PostgreSQL on this machine."""

import shutil
from pathlib import Path

# PostgreSQL adds to its write-ahead log in files of 16 MiB, and writes a new one completely before it uses it.
LEAST_BYTES = 32 * 1024 * 1024


def is_full(folder: Path) -> bool:
    """Return whether a PostgreSQL with its data in `folder` may have no room for its write-ahead log."""
    try:
        return shutil.disk_usage(folder).free < LEAST_BYTES
    except OSError:
        return False
