"""Fetch the sources of Apache httpd, APR and APR-util, configure them, and record how they are compiled.

This is done once. Every trial then compiles the same files with its own flags (build.py), without configure, make and
libtool. The results are in the folder `source` next to this file: `tree` (configured, with generated files),
`commands.json` (each compiler call and the libraries to link) and `provenance.json` (versions and SHA-256 of the
tarballs).

If no tarballs are given, `apt-get source` fetches them from the main archive of this Debian or Ubuntu release. apt
checks their signatures. Its settings do not change, and it needs no privileges.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent))

from debian_sources import (  # noqa: E402  # in the parent folder
    Call,
    PrepareError,
    checked,
    fetch,
    need_programs,
    record,
    run,
    step,
    sums,
    unpack,
)

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
    need_programs(("gcc", "make"), NEEDED)
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
            tarballs = fetch({part: package for part, (package, _) in PARTS.items()}, place)
        made = place / "source"
        unpack_all(tarballs, made / "tree")
        configure(made / "tree")
        record_commands(made / "tree", made / "commands.json", place)
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


def unpack_all(tarballs: Mapping[str, Path], tree: Path) -> None:
    """Unpack the three tarballs into one tree. Raise PrepareError."""
    step("unpacking")
    for part, (_, place) in PARTS.items():
        unpack(tarballs[part], tree / place, without="docs/manual")
    for wanted in ("configure", "srclib/apr/configure", "srclib/apr-util/configure"):
        if not (tree / wanted).is_file():
            raise PrepareError(f"the tarballs have no {wanted}: are they tarballs of httpd, APR and APR-util 1.x?")


# --- how it is compiled


def configure(tree: Path) -> None:
    """Configure the tree. Raise PrepareError."""
    step("configuring, half a minute")
    run(["./configure", *CONFIGURE], tree, "configure", hint=f"It needs {NEEDED}.")


def record_commands(tree: Path, commands: Path, place: Path) -> None:
    """Have make build everything once for its generated files; write the calls to `commands`. Raise PrepareError."""
    step("making the generated files and recording the compiler calls, up to a minute")
    # httpd and its libraries, without its support programs
    makefile = tree / "Makefile"
    makefile.write_text(re.sub(r"^(SUBDIRS\s*=.*)\bsupport\b", r"\1", makefile.read_text(), flags=re.MULTILINE))
    calls = record([], tree, place)
    noted = recorded_commands(calls, tree)
    if not noted["compile"] or not (tree / "httpd").is_file():
        raise PrepareError("make built no httpd from these tarballs")
    commands.write_text(json.dumps(noted, indent=1) + "\n")
    for file in tree.rglob("*"):
        if file.suffix in (".o", ".a", ".lo", ".la") or file == tree / "httpd":
            file.unlink()


def recorded_commands(calls: Sequence[Call], tree: Path) -> dict[str, list[object]]:
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


if __name__ == "__main__":
    sys.exit(main())
