"""Fetch the sources of Apache httpd, APR and APR-util, configure them, and record how they are compiled.

This is done once. Every trial then compiles the same files with its own flags (build.py), without configure, make and
libtool. The results are in the folder `source` next to this file: `tree` (configured, with generated files),
`commands.json` (each compiler call and the libraries to link) and `provenance.json` (versions and SHA-256 of the
tarballs).

If no tarballs are given, `apt-get source` fetches them from the main archive of this Debian or Ubuntu release. apt
checks their signatures. Its settings do not change, and it needs no privileges.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "source"
# our name of a part: the Debian source package, and its place in the tree
PARTS = {"httpd": ("apache2", "."), "apr": ("apr", "srclib/apr"), "apr-util": ("apr-util", "srclib/apr-util")}
CONFIGURE = (
    "CC=gcc",
    "CFLAGS=-O0",  # removed from the recorded commands
    "--with-included-apr",
    "--with-mpm=event",
    "--enable-mods-static=few",
    "--enable-cgid",
    # everything in one program, to which the trial's flags apply as a whole
    "--disable-so",
    "--disable-shared",
    "--disable-dso",
    "--disable-util-dso",
    # nothing that depends on what happens to be installed
    "--without-crypto",
    "--without-sqlite3",
    "--without-pgsql",
    "--without-mysql",
    "--without-odbc",
    "--without-ldap",
    "--without-gdbm",
    "--without-berkeley-db",
)
NEEDED = "gcc, make, and the headers of PCRE2 and expat (Debian packages gcc, make, libpcre2-dev, libexpat1-dev)"
EXAMPLE = """\
examples:
  python3 prepare.py
  python3 prepare.py --httpd httpd.tar.gz --apr apr-1.7.2.tar.bz2 --apr-util 'apr-util-1.6.3.tar.bz2#sha256=a4...'
"""
# This script comes before gcc in PATH while make runs, and records its calls. It must call gcc by its full path: with
# the name alone gcc would look for its parts in the folder of this script.
RECORDER = """\
#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([os.getcwd(), sys.argv[1:]]) + "\\n")
os.execv({gcc!r}, [{gcc!r}, *sys.argv[1:]])
"""


class PrepareError(Exception):
    """The sources cannot be prepared; `str()` says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something is missing or fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for part in PARTS:
        parser.add_argument(f"--{part}", metavar="TARBALL", help=f"the tarball of {part}; #sha256=... may follow")
    parser.add_argument("--again", action="store_true", help="prepare the sources even if they exist")
    options = vars(parser.parse_args(argv))
    given = {part: options[part.replace("-", "_")] for part in PARTS}
    try:
        if any(given.values()) and not all(given.values()):
            missing = ", ".join(f"--{part}" for part in PARTS if not given[part])
            raise PrepareError(f"the tarballs belong together: {missing} must be given as well")
        show(prepare(given if all(given.values()) else None, again=options["again"]))
    except PrepareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def prepare(given: Mapping[str, str] | None, *, again: bool) -> Mapping[str, Any]:
    """Make `SOURCE` if it does not exist or has other tarballs; return the content of `provenance.json`.

    Args:
        given: the tarballs in the command line; None: apt fetches them.
        again: make it in any case.

    Raises:
        PrepareError: it cannot be made; what was there stays.
    """
    for program in ("gcc", "make"):
        if shutil.which(program) is None:
            raise PrepareError(f"{program} is not in PATH: install {NEEDED}")
    tarballs = None if given is None else {part: checked(part, text) for part, text in given.items()}
    if SOURCE.exists() and not again:
        known = recorded()
        if tarballs is None or sums(tarballs) == {part: known[part]["sha256"] for part in PARTS}:
            return known
    try:
        FOLDER.joinpath(".part").mkdir(exist_ok=True)
    except OSError as error:
        raise PrepareError(f"{FOLDER} cannot be written: {error.strerror}") from None
    with tempfile.TemporaryDirectory(dir=FOLDER / ".part") as name:
        place = Path(name).resolve()
        if tarballs is None:
            tarballs = fetch(place)
        made = place / "source"
        unpack(tarballs, made / "tree")
        configure(made / "tree")
        record(made / "tree", made / "commands.json", place)
        known = {
            **{part: {"file": path.name, "sha256": sums({part: path})[part]} for part, path in tarballs.items()},
            "configure": list(CONFIGURE),
        }
        (made / "provenance.json").write_text(json.dumps(known, indent=1) + "\n")
        if SOURCE.exists():
            SOURCE.rename(place / "old")
        made.rename(SOURCE)
    return known


def recorded() -> dict[str, Any]:
    """Return the content of `provenance.json`. Raise PrepareError."""
    try:
        known: dict[str, Any] = json.loads((SOURCE / "provenance.json").read_text())
    except (OSError, ValueError) as error:
        raise PrepareError(f"{SOURCE} is damaged ({error}): prepare it with --again") from None
    return known


def show(known: Mapping[str, Any]) -> None:
    """Print the prepared folder and its tarballs."""
    print(f"prepared: {SOURCE}")
    for part in PARTS:
        print(f"  {part}: {known[part]['file']} sha256 {known[part]['sha256']}")


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


def fetch(place: Path) -> dict[str, Path]:
    """Have apt fetch the tarballs of this release, with separate settings in `place`. Raise PrepareError."""
    if shutil.which("apt-get") is None:
        raise PrepareError("apt-get is not there to fetch the sources: give --httpd, --apr and --apr-util tarballs")
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
    run([*apt, "source", "--download-only", *(name for name, _ in PARTS.values())], tarballs, "apt-get source")
    found = {}
    for part, (package, _) in PARTS.items():
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


def unpack(tarballs: Mapping[str, Path], tree: Path) -> None:
    """Unpack the three tarballs into one tree. Raise PrepareError."""
    step("unpacking")
    for part, (_, place) in PARTS.items():
        target = tree / place
        target.mkdir(parents=True, exist_ok=True)
        try:
            with tarfile.open(tarballs[part]) as archive:
                for member in archive:
                    # remove the top folder, whose name has the version
                    member.name = member.name.partition("/")[2]
                    if member.name and not member.name.startswith("docs/manual/"):
                        archive.extract(member, target, filter="data")
        except (tarfile.TarError, OSError, EOFError) as error:
            raise PrepareError(f"{tarballs[part]} cannot be unpacked: {error}") from None
    for wanted in ("configure", "srclib/apr/configure", "srclib/apr-util/configure"):
        if not (tree / wanted).is_file():
            raise PrepareError(f"the tarballs have no {wanted}: are they tarballs of httpd, APR and APR-util 1.x?")


# --- how it is compiled


def configure(tree: Path) -> None:
    """Configure the tree. Raise PrepareError."""
    step("configuring, half a minute")
    run(["./configure", *CONFIGURE], tree, "configure", hint=f"It needs {NEEDED}.")


def record(tree: Path, commands: Path, place: Path) -> None:
    """Have make build everything once for its generated files; write the calls to `commands`. Raise PrepareError."""
    step("making the generated files and recording the compiler calls, up to a minute")
    gcc = shutil.which("gcc")
    assert gcc is not None
    log = place / "calls"
    recorder = place / "bin" / "gcc"
    recorder.parent.mkdir()
    recorder.write_text(RECORDER.format(python=sys.executable, log=str(log), gcc=gcc))
    recorder.chmod(0o755)
    path = f"{recorder.parent}{os.pathsep}{os.environ['PATH']}"
    # httpd and its libraries, without its support programs
    makefile = tree / "Makefile"
    makefile.write_text(re.sub(r"^(SUBDIRS\s*=.*)\bsupport\b", r"\1", makefile.read_text(), flags=re.MULTILINE))
    run(["make", f"-j{len(os.sched_getaffinity(0))}"], tree, "make", env={"PATH": path})
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    noted = recorded_commands(calls, tree)
    if not noted["compile"] or not (tree / "httpd").is_file():
        raise PrepareError("make built no httpd from these tarballs")
    commands.write_text(json.dumps(noted, indent=1) + "\n")
    for file in tree.rglob("*"):
        if file.suffix in (".o", ".a", ".lo", ".la") or file == tree / "httpd":
            file.unlink()


def recorded_commands(calls: Sequence[tuple[str, list[str]]], tree: Path) -> dict[str, list[object]]:
    """Select the calls of gcc (folder, arguments) that make up httpd.

    Returns:
        "compile": a folder, relative to the tree, and gcc's arguments for each source file, without output and -O0;
        "libraries": the arguments for libraries. `{tree}` stands for the tree.
    """
    [link] = [arguments for _, arguments in calls if "httpd" in arguments and "-c" not in arguments]
    members = {Path(item).name for item in link if item.endswith(".o")}
    for item in link:
        if item.endswith(".a"):
            listed = subprocess.run(["ar", "t", tree / item], capture_output=True, text=True, check=True).stdout
            members.update(listed.split())
    compile_calls: list[object] = []
    for folder, arguments in calls:
        if "-c" not in arguments:
            continue
        kept = list(arguments)
        if "-o" in kept:
            at = kept.index("-o")
            name = Path(kept[at + 1]).name
            del kept[at : at + 2]
        else:
            name = Path(next(item for item in kept if item.endswith(".c"))).stem + ".o"
        if name in members:
            kept = [item.replace(str(tree), "{tree}") for item in kept if item != "-O0"]
            compile_calls.append([os.path.relpath(folder, tree), kept])
    return {"compile": compile_calls, "libraries": [item for item in link if item.startswith("-l")]}


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


if __name__ == "__main__":
    sys.exit(main())
