"""Programs that are built from Go modules, once for each user."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def go_program(name: str, module: str) -> str:
    """Return the path of an installed program, or of one that Go builds from `module` (PATH@VERSION).

    The first build takes half a minute or more; later tests of this user find its result. The test is skipped if Go
    is not installed or cannot fetch the module.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab" / name
    program = shutil.which(name) or shutil.which(name, path=str(cache))
    if program is not None:
        return program
    if shutil.which("go") is None:
        pytest.skip(f"neither {name} nor Go, which builds it, is installed")
    built = subprocess.run(
        ["go", "install", module], env={**os.environ, "GOBIN": str(cache)}, capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        pytest.skip(f"Go cannot build {module}: {built.stderr.strip()}")
    return str(cache / name)
