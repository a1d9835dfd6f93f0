"""Identify a program or file, to detect whether it has changed since an earlier result."""

import hashlib
import shutil
from pathlib import Path

from trimtab_agent.needs import search_path


def of_dependency(name: str, folder: Path) -> str:
    """Identify a file of `folder` by its content, or a program in `search_path` by its path, size and time.

    Raises:
        FileNotFoundError: there is no such file or program.
    """
    file = folder / name
    if file.is_file():
        return f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}"
    program = shutil.which(name, path=search_path())
    if program is None:
        raise FileNotFoundError(f"{name!r} is neither a file in {folder} nor a program in PATH")
    real = Path(program).resolve()
    status = real.stat()
    return f"{name} {real} {status.st_size} {status.st_mtime_ns}"
