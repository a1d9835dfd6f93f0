"""Fetch the sources of the targets and compile them once: each function in a section, with frame pointers.

Trials then only link the same object files in other orders. The results are in the folder `source` next to this file,
a folder for each target. `httpd` takes about half a minute, after the sources of apache-gcc, which are prepared first
if they are missing (a minute). `postgres` is PostgreSQL 15 or newer, whichever this Debian or Ubuntu release has: its
server, initdb and pgbench, and a database that trials copy. It takes some minutes. Each target is then profiled once:
this held-out profile judges the layouts of all trials.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent))

from debian_sources import (  # noqa: E402  # in the parent folder
    Call,
    PrepareError,
    fetch,
    need_programs,
    record,
    run,
    step,
    sums,
    unpack,
)

SOURCE = FOLDER / "source"
APACHE = FOLDER.parent / "apache-gcc"
FLAGS = ("-O2", "-ffunction-sections", "-fno-omit-frame-pointer")
FIXED = "-fno-pie"  # fixed addresses
TARGETS = ("httpd", "postgres")
NEEDED = "gcc, make, GNU binutils and perf (Debian packages gcc, make, binutils, linux-perf)"
EXAMPLE = """\
examples:
  python3 prepare.py httpd
  python3 prepare.py httpd postgres
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something is missing or fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="+", choices=TARGETS)
    parser.add_argument("--again", action="store_true", help="prepare the targets even if they exist")
    options = parser.parse_args(argv)
    try:
        need_programs(("gcc", "make", "objdump", "perf"), NEEDED)
        for target in options.targets:
            if options.again or not (SOURCE / target / "link.json").is_file():
                prepare(target)
            if not (SOURCE / target / "heldout.json").is_file():
                hold_out(target)
            print(f"prepared: {SOURCE / target}")
        # what the agent's cache of builds depends on
        known = {
            file.parent.name: {**json.loads(file.read_text()), **held_out(file.parent)}
            for file in sorted(SOURCE.glob("*/provenance.json"))
        }
        (SOURCE / "prepared.json").write_text(json.dumps(known, indent=1) + "\n")
    except PrepareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def prepare(target: str) -> None:
    """Make the folder of a target. Raise PrepareError; what was there stays."""
    place = SOURCE / target
    SOURCE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SOURCE, prefix=".part") as name:
        made = Path(name) / target
        made.mkdir()
        {"httpd": httpd, "postgres": postgres}[target](made)
        if place.exists():
            place.rename(Path(name) / "old")
        made.rename(place)


def hold_out(target: str) -> None:
    """Record the profile that judges the layouts of a target. Raise PrepareError."""
    step(f"profiling {target}: the held-out profile")
    sys.path.append(str(FOLDER))
    import heldout  # needs what this script makes
    from linking import LinkError
    from serving import MachineError, ServerError
    from targets import TARGETS

    try:
        heldout.record(TARGETS[target])
    except (LinkError, MachineError, ServerError) as error:
        raise PrepareError(str(error)) from None


def held_out(place: Path) -> dict[str, str]:
    """Return the digest of a target's held-out profile."""
    file = place / "heldout.json"
    return {"held_out": hashlib.sha256(file.read_bytes()).hexdigest()} if file.is_file() else {}


# --- httpd


def httpd(made: Path) -> None:
    """Compile httpd and its libraries by the calls that apache-gcc has recorded."""
    run([sys.executable, str(APACHE / "prepare.py")], APACHE, "prepare.py of apache-gcc")
    commands = json.loads((APACHE / "source" / "commands.json").read_text())
    tree = APACHE / "source" / "tree"
    step("compiling httpd")

    def compile_one(number: int, folder: str, arguments: list[str]) -> str:
        output = made / f"{number:03}.o"
        placed = [item.replace("{tree}", str(tree)) for item in arguments]
        # httpd otherwise refuses to run as root, as agents in containers do; it listens on the loopback interface only
        run(["gcc", *FLAGS, FIXED, "-w", "-DBIG_SECURITY_HOLE", *placed, "-o", str(output)], tree / folder, "gcc")
        return output.name

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outputs = list(pool.map(lambda call: compile_one(call[0], *call[1]), enumerate(commands["compile"])))
    write_link(made, ".", [*outputs, *commands["libraries"]])
    shutil.copy(APACHE / "source" / "provenance.json", made)


# --- PostgreSQL


def postgres(made: Path) -> None:
    """Compile PostgreSQL's server, install what runs it, and make a database with the tables of pgbench."""
    package = postgres_package()
    tree = made / "tree"
    part = made.parent
    tarballs = fetch({"postgres": package}, part)
    unpack(tarballs["postgres"], tree)
    for file in ("src/backend/main/main.c", "src/bin/initdb/initdb.c"):
        # it otherwise refuses to run as root, as agents in containers do; it listens on a socket in a trial's folder
        text = (tree / file).read_text()
        changed = text.replace("if (geteuid() == 0)", "if (false)")
        if changed == text:
            raise PrepareError(f"{file} has no check of the user any more: this version of PostgreSQL is not known")
        (tree / file).write_text(changed)
    step("configuring PostgreSQL, half a minute")
    place = SOURCE / "postgres"
    options = ["--without-readline", "--without-zlib", f"CFLAGS={' '.join(FLAGS)}", "LDFLAGS_EX=-no-pie"]
    if "--with-icu" in (tree / "configure").read_text():
        options.append("--without-icu")
    run(["./configure", f"--prefix={place / 'installed'}", *options], tree, "configure")
    step("compiling PostgreSQL, some minutes")
    calls = record(["-C", "src/backend", f"COPT={FIXED}"], tree, part)
    destination = f"DESTDIR={part / 'root'}"
    for folder in (
        "src/backend",
        "src/backend/snowball",
        "src/timezone",
        "src/pl/plpgsql/src",
        "src/interfaces/libpq",
        "src/bin/initdb",
        "src/bin/pgbench",
    ):
        run(
            ["make", f"-j{len(os.sched_getaffinity(0))}", "-C", folder, "install", f"COPT={FIXED}", destination],
            tree,
            f"make {folder}",
        )
    (part / "root" / (place / "installed").relative_to("/")).rename(made / "installed")
    [link] = [(cwd, arguments) for cwd, arguments in calls if "postgres" in arguments and "-c" not in arguments]
    write_link(made, str(Path(link[0]).relative_to(made)), linked_files(link))
    make_database(made, part)
    for file in tree.rglob("*"):  # only the objects are needed
        if file.suffix in (".c", ".h", ".sgml", ".po", ".sql", ".out"):
            file.unlink()
    (made / "provenance.json").write_text(
        json.dumps({"postgres": {"file": tarballs["postgres"].name, "sha256": sums(tarballs)["postgres"]}}) + "\n"
    )


def postgres_package() -> str:
    """Return the newest source package of PostgreSQL that apt knows by its server's package. Raise PrepareError."""
    listed = subprocess.run(
        ["apt-cache", "pkgnames", "postgresql-"], capture_output=True, text=True, check=False
    ).stdout
    versions = [int(version) for version in re.findall(r"^postgresql-(\d+)$", listed, re.MULTILINE)]
    if not versions:
        raise PrepareError("apt knows no package postgresql-VERSION: run apt-get update, or add the main archive")
    return f"postgresql-{max(versions)}"


def linked_files(call: Call) -> list[str]:
    """Return the object files and libraries of a call that links, without its other options."""
    return [item for item in call[1] if item.endswith((".o", ".a")) or item.startswith("-l") or item == "-Wl,-E"]


def make_database(made: Path, part: Path) -> None:
    """Make a database with pgbench's tables in `made`/data."""
    step("making a database")
    programs = made / "installed" / "bin"
    data = made / "data"
    run(
        [str(programs / "initdb"), "-D", str(data), "-U", "bench", "-A", "trust", "--no-sync", "--no-locale",
         "--encoding=UTF8", "--wal-segsize=1"],
        made,
        "initdb",
    )  # fmt: skip
    sys.path.append(str(FOLDER))
    import targets  # reads what this script makes

    with targets.postgres_running(programs / "postgres", data, part, sorted(os.sched_getaffinity(0))) as server:
        run([str(programs / "pgbench"), *server.connection, "-i", "-q", "-s", "1"], part, "pgbench", env=server.env)


def write_link(made: Path, folder: str, arguments: Sequence[str]) -> None:
    """Write how the target is linked: the folder and gcc's arguments."""
    (made / "link.json").write_text(json.dumps({"folder": folder, "arguments": list(arguments)}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
