"""Say what a component needs that is not installed, and how to install it: `trimtab-agent prepare`."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from trimtab_components.schema import Need
from trimtab_components.terminal import write

# Patterns of folders with programs that are not in the PATH of every user: those for administrators, and PostgreSQL's
# of Debian.
FOLDERS = ("usr/sbin", "usr/local/sbin", "sbin", "usr/lib/postgresql/*/bin")
COMMANDS = {"program": "apt-get install", "file": "apt-get install", "module": "python3 -m pip install"}


def search_path() -> str:
    """Return the folders of programs: those of PATH, PGBIN, and `FOLDERS`, later versions first."""
    folders = [str(folder) for pattern in FOLDERS for folder in sorted(Path("/").glob(pattern), reverse=True)]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), os.environ.get("PGBIN", ""), *folders])


def missing(needs: Iterable[Need]) -> list[Need]:
    """Return the needs that are not on this machine."""
    return [one for one in needs if not _is_there(one)]


def commands(needs: Sequence[Need]) -> list[str]:
    """Return the commands that install these needs, one for each way to install."""
    packages: dict[str, list[str]] = {}
    for one in needs:
        chosen = packages.setdefault(COMMANDS[one.kind], [])
        if one.package not in chosen:
            chosen.append(one.package)
    return [f"{command} {' '.join(names)}" for command, names in packages.items()]


def packages(needs: Iterable[Need]) -> str:
    """Return the names of the packages, those of Python with the word pip."""
    names = dict.fromkeys(f"{one.package} (pip)" if one.kind == "module" else one.package for one in needs)
    return ", ".join(names)


def report(name: str, folder: Path, needs: Sequence[Need]) -> bool:
    """Print what a workload needs and what to do next; return whether everything is there."""
    absent = missing(needs)
    for one in needs:
        write(f"{'missing' if one in absent else 'found  '}  {one.kind} {one.name} ({one.package})")
    if absent:
        write("Install what is missing, and try again:")
        for command in commands(absent):
            write(f"    {command}")
        return False
    script = folder / "prepare.py"
    if script.is_file():
        write(f"Prepare the sources once:\n    python3 {script}")
    write(f"Then:\n    trimtab-agent try {name}")
    return True


def to_json(name: str, folder: Path, needs: Sequence[Need]) -> dict[str, object]:
    """Return the same for programs: what is needed, what of it is missing, and the commands to run next."""
    absent = missing(needs)
    script = folder / "prepare.py"
    after = [f"python3 {script}"] if script.is_file() else []
    return {
        "name": name,
        "folder": str(folder),
        "needs": [asdict(one) for one in needs],
        "missing": [one.name for one in absent],
        "commands": commands(absent) if absent else [*after, f"trimtab-agent try {name}"],
    }


def _is_there(need: Need) -> bool:
    if need.kind == "file":
        return Path(need.name).exists()
    path = search_path()
    if need.kind == "program":
        return shutil.which(need.name, path=path) is not None
    # Scripts of components run with this Python, not with the agent's.
    python = shutil.which("python3", path=path)
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return python is not None and subprocess.run([python, "-c", code, need.name], check=False).returncode == 0
