"""Build httpd with its modules, APR and APR-util with the given flags, by the calls that prepare.py has recorded.

    python3 build.py FOLDER -O2 -fno-plt ...

FOLDER gets `httpd` and `build.json`: the flags, the seconds of the build by the clock and of processor time, and the
bytes of code and data in the program. The source does not change, so that several builds may run at the same time.

The exit status is 1 if the compiler refuses the flags or fails with them, and 3 if the machine is the cause: something
is missing, a disk is full, or the compiler was killed.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "source"
MACHINE = 3
# messages of the compiler when the machine is the cause, not the flags
MACHINES_FAULT = (
    "No space left on device",
    "Disk quota exceeded",
    "Cannot allocate memory",
    "Killed signal terminated program",
    "terminated with signal 9 [Killed]",
)
# httpd otherwise refuses to run as root, as agents in containers do; it listens on the loopback interface only
ALWAYS = ("-w", "-DBIG_SECURITY_HOLE")


class CompilerError(Exception):
    """The compiler or linker refuses the flags or fails with them; `str()` is its message."""


class MachineError(Exception):
    """The compiler or linker cannot work on this machine; `str()` is its message."""


def main(argv: Sequence[str]) -> int:
    """Run the command line."""
    target, flags = Path(argv[0]).resolve(), list(argv[1:])
    try:
        commands, provenance = (
            json.loads((SOURCE / f"{name}.json").read_text()) for name in ("commands", "provenance")
        )
    except (OSError, ValueError) as error:
        print(f"error: no source of Apache httpd ({error}): run python3 {FOLDER / 'prepare.py'}", file=sys.stderr)
        return MACHINE
    # for the trial's log
    for part in provenance.values():
        if isinstance(part, dict):
            print(f"source: {part['file']} sha256 {part['sha256']}")
    try:
        built = build(commands, target, flags)
    except CompilerError as error:
        print(error, file=sys.stderr)
        return 1
    except (MachineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    (target / "build.json").write_text(json.dumps({"flags": flags, **built}) + "\n")
    return 0


def build(commands: dict[str, list[Any]], target: Path, flags: Sequence[str]) -> dict[str, float]:
    """Compile and link into `target`; return the content of `build.json`.

    Raises:
        CompilerError: a compiler has failed.
        MachineError: one could not work.
        OSError: gcc cannot be started, or the folder not written.
    """
    tree = SOURCE / "tree"
    objects = target / "objects"
    objects.mkdir()
    began, busy = time.monotonic(), processor_time()
    failed = False

    def compile_one(number: int, folder: str, arguments: list[str]) -> str:
        nonlocal failed
        output = str(objects / f"{number:03}.o")
        if not failed:
            placed = [item.replace("{tree}", str(tree)) for item in arguments]
            try:
                run(["gcc", *flags, *ALWAYS, *placed, "-o", output], tree / folder)
            except BaseException:
                failed = True  # the rest would only say the same again
                raise
        return output

    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        waiting = [pool.submit(compile_one, number, *call) for number, call in enumerate(commands["compile"])]
        outputs = [one.result() for one in waiting]
    run(["gcc", *flags, *ALWAYS, *outputs, "-o", str(target / "httpd"), *commands["libraries"]], target)
    seconds, processor_seconds = time.monotonic() - began, processor_time() - busy
    shutil.rmtree(objects)
    # text and data of `size`: debugging symbols and the padding of sections do not change them
    text, data = run(["size", str(target / "httpd")], target).splitlines()[1].split()[:2]
    return {
        "build_seconds": seconds,
        "build_cpu_seconds": processor_seconds,
        "binary_bytes": int(text) + int(data),
    }


def run(argv: Sequence[str], cwd: Path) -> str:
    """Return the output of a program. Raise CompilerError or MachineError with all of its messages if it fails."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        what = next((item for item in reversed(argv) if item.endswith(".c")), "linking")
        machine = done.returncode < 0 or any(words in done.stderr for words in MACHINES_FAULT)
        raise (MachineError if machine else CompilerError)(
            f"{done.stderr.rstrip()}\n{argv[0]} ended with {how}: {what}"
        )
    return done.stdout


def processor_time() -> float:
    """Return the seconds of processor time of all programs that have run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
