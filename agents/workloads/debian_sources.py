"""Tools of the scripts prepare.py: source packages of this Debian or Ubuntu release, and how make compiles them.

The scripts run with the system's Python, so that this module imports the standard library only.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# This script comes before gcc in PATH while make runs, and records its calls. It must call gcc by its full path: with
# the name alone gcc would look for its parts in the folder of this script.
RECORDER = """\
#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.getcwd(), sys.argv[1:]]) + "\\n")
os.execv({gcc!r}, [{gcc!r}, *sys.argv[1:]])
"""

Call = tuple[str, list[str]]
"""A call of the compiler: its folder and its arguments."""


class PrepareError(Exception):
    """The sources cannot be prepared; `str()` says why and what to do."""


def need_programs(names: Sequence[str], needed: str) -> None:
    """Raise PrepareError for a program that is not in PATH. `needed` says what to install."""
    for name in names:
        if shutil.which(name) is None:
            raise PrepareError(f"{name} is not in PATH: install {needed}")


# --- tarballs


def checked(part: str, text: str) -> Path:
    """Return the tarball that an option names, FILE or FILE#sha256=HEX. Raise PrepareError."""
    name, _, wanted = text.partition("#sha256=")
    path = Path(name)
    if not path.is_file():
        raise PrepareError(f"--{part} is {name!r}: there is no such file")
    found = sums({part: path})[part]
    if wanted and found != wanted.lower():
        raise PrepareError(f"--{part}: the SHA-256 of {name} is {found}, not {wanted}")
    return path


def sums(tarballs: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each tarball."""
    return {part: hashlib.sha256(path.read_bytes()).hexdigest() for part, path in tarballs.items()}


def fetch(packages: Mapping[str, str], place: Path) -> dict[str, Path]:
    """Have apt fetch the upstream tarballs of this release, with separate settings in `place`.

    Args:
        packages: the Debian source package of each of our parts.
        place: an empty folder.

    Raises:
        PrepareError: apt is missing or fails, or brings something else.
    """
    if shutil.which("apt-get") is None:
        options = ", ".join(f"--{part}" for part in packages)
        raise PrepareError(f"apt-get is not there to fetch the sources: give tarballs ({options})")
    step("fetching the sources with apt")
    release = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.MULTILINE)
    if release is None:
        raise PrepareError("/etc/os-release names no release to fetch the sources of: give tarballs")
    entries = [
        entry
        for file in sorted([Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")])
        if file.is_file()
        for entry in source_entries(file.read_text(), file.suffix == ".sources", release[1])
    ]
    if not entries:
        raise PrepareError(f"apt's sources name no archive of {release[1]}: give tarballs")
    parts, lists, cache, tarballs = (place / name for name in ("parts", "lists/partial", "cache", "tarballs"))
    for folder in (parts, lists, cache, tarballs):
        folder.mkdir(parents=True)
    (parts / "trimtab.sources").write_text("\n".join(entries))
    options = (
        "Dir::Etc::sourcelist=/dev/null",
        f"Dir::Etc::sourceparts={parts}",
        f"Dir::State::lists={lists.parent}",
        f"Dir::Cache={cache}",
        "APT::Sandbox::User=",
    )
    apt = ["apt-get", "-qq", *(item for option in options for item in ("-o", option))]
    run([*apt, "update"], place, "apt-get update")
    run([*apt, "source", "--download-only", *packages.values()], tarballs, "apt-get source")
    found = {}
    for part, package in packages.items():
        files = [file for file in tarballs.glob(f"{package}_*.orig.tar.*") if file.suffix != ".asc"]
        if len(files) != 1:
            raise PrepareError(f"apt-get source brought {len(files)} tarballs of {package}: give tarballs")
        found[part] = files[0]
    return found


def source_entries(text: str, stanzas: bool, release: str) -> list[str]:
    """Return the entries of a file of apt's sources for the release's main archive, as stanzas for source packages.

    Args:
        text: the content of the file.
        stanzas: whether the file has stanzas (deb822), not lines.
        release: the release's code name; updates and security fixes are separate archives.
    """
    entries = []
    if stanzas:
        for stanza in re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#"))):
            suites = re.search(r"^Suites:(.*)$", stanza, re.MULTILINE)
            if suites and release in suites[1].split():
                stanza = re.sub(r"^Types:.*$", "Types: deb-src", stanza.strip(), flags=re.MULTILINE)
                entries.append(re.sub(r"^Suites:.*$", f"Suites: {release}", stanza, flags=re.MULTILINE) + "\n")
        return entries
    for line in text.splitlines():
        match = re.fullmatch(r"\s*deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+([^#]+).*", line)
        if match and match[3] == release:
            signed = re.search(r"signed-by=(\S+)", match[1] or "")
            entry = f"Types: deb-src\nURIs: {match[2]}\nSuites: {release}\nComponents: {match[4].strip()}\n"
            entries.append(entry + (f"Signed-By: {signed[1]}\n" if signed else ""))
    return entries


def unpack(tarball: Path, target: Path, *, without: str | None = None) -> None:
    """Unpack a tarball into a folder, without its top folder, whose name has the version.

    Args:
        tarball: the tarball.
        target: the folder, which may have files already.
        without: a folder of the tarball that is left out.

    Raises:
        PrepareError: this is no tarball, or the folder cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(tarball) as archive:
            for member in archive:
                member.name = member.name.partition("/")[2]
                if member.name and not (without and member.name.startswith(f"{without}/")):
                    archive.extract(member, target, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise PrepareError(f"{tarball} cannot be unpacked: {error}") from None


# --- how make compiles them


def record(make: Sequence[str], tree: Path, place: Path) -> list[Call]:
    """Run `make` in a tree; return all calls of gcc. `place` is a folder for the recorder. Raise PrepareError."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise PrepareError("gcc is not in PATH: install it (Debian package gcc)")
    log = place / "calls"
    recorder = place / "bin" / "gcc"
    recorder.parent.mkdir(exist_ok=True)
    recorder.write_text(RECORDER.format(python=sys.executable, log=str(log), gcc=gcc))
    recorder.chmod(0o755)
    path = f"{recorder.parent}{os.pathsep}{os.environ['PATH']}"
    run(["make", f"-j{len(os.sched_getaffinity(0))}", *make], tree, "make", env={"PATH": path})
    return [json.loads(line) for line in log.read_text().splitlines()]


# --- programs


def run(argv: Sequence[str], cwd: Path, name: str, *, env: Mapping[str, str] | None = None, hint: str = "") -> None:
    """Run a program to its end. Raise PrepareError with its last lines if it fails."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(line[:300] for line in done.stdout.splitlines()[-15:])
        raise PrepareError(f"{name} ended with exit code {done.returncode}:\n{last}\n{hint}".rstrip())


def step(text: str) -> None:
    """Print what happens now."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
