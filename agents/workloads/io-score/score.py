"""Run the phases of an I/O score on a folder, and print each part and the score as one JSON object.

The phases have the order and the rules of IO500: large sequential transfers of each process to a file of its own
("easy"), transfers of 47,008 bytes of all processes to one file in turns ("hard"), empty files in a folder for each
process ("easy"), files of 3,901 bytes in one folder ("hard"), and a search of all files. Writes end with an fsync or a
syncfs, so that the drain of a cache counts. Everything is scaled to some seconds, so the score is no IO500 score.

score = sqrt(bandwidth * metadata), where bandwidth is the geometric mean of four rates in GiB/s, and metadata is the
geometric mean of eight rates in thousands of operations a second.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIB, GIB = 1 << 20, 1 << 30
EASY_MIB, HARD_TRANSFERS, HARD_BYTES = 128, 800, 47008
EASY_FILES, HARD_FILES, FILE_BYTES = 2000, 800, 3901
MOST_PROCESSES = 32
WRONG, USAGE, MACHINE = 1, 2, 3
EXAMPLE = """\
example:
  python3 score.py ./build/metadata /scratch/score --processes 8 --transfer-kib 4096
"""


class ScoreError(Exception):
    """A phase failed; `status` is the exit status that this script passes on."""

    def __init__(self, message: str, status: int = MACHINE) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Load:
    """The load: its programs and amounts, which are divided by `scale`."""

    metadata: Path
    folder: Path
    processes: int
    transfer_kib: int
    direct: bool
    preallocate: bool
    scale: int

    def amount(self, whole: int) -> int:
        """Return a part of an amount that all processes share equally, at least one for each."""
        return max(whole // self.scale // self.processes, 1) * self.processes

    # --- bandwidth, in GiB/s

    def easy(self, action: str) -> float:
        """Write or read one file for each process."""
        each = self.amount(EASY_MIB) // self.processes
        return self._fio(
            action,
            f"--rw={action}",
            "--name=easy",
            f"--bs={self.transfer_kib}k",
            f"--size={each}m",
            f"--direct={int(self.direct)}",
            f"--fallocate={'native' if self.preallocate else 'none'}",
        )

    def hard(self, action: str) -> float:
        """Write or read one file, in which the processes have every n-th transfer."""
        count = self.amount(HARD_TRANSFERS)
        each = count // self.processes
        return self._fio(
            action,
            f"--rw={action}:{HARD_BYTES * (self.processes - 1)}",
            "--name=hard",
            f"--filename={self.folder / 'hard'}",
            f"--bs={HARD_BYTES}",
            f"--filesize={HARD_BYTES * count}",
            f"--io_size={HARD_BYTES * each}",
            f"--offset_increment={HARD_BYTES}",
            "--fallocate=none",
            "--create_on_open=1",
        )

    def _fio(self, action: str, *options: str) -> float:
        command = ["fio", *options, f"--directory={self.folder}", f"--numjobs={self.processes}", "--ioengine=psync"]
        if any(option.startswith("--filename=") for option in options):
            command.remove(f"--directory={self.folder}")
        command += ["--end_fsync=1", "--invalidate=1", "--group_reporting", "--output-format=json"]
        [job] = json.loads(output(command))["jobs"]
        if not job[action]["bw_bytes"]:
            raise ScoreError(f"fio measured nothing in {action}: {job[action]}", WRONG)
        return float(job[action]["bw_bytes"]) / GIB

    # --- metadata, in thousands of operations a second

    def files(self, action: str, kind: str) -> float:
        """Create, stat, read or delete the files of a kind, "easy" or "hard"."""
        whole, size, place = (EASY_FILES, 0, "own") if kind == "easy" else (HARD_FILES, FILE_BYTES, "shared")
        count = self.amount(whole)
        command = [str(self.metadata), action, str(self.folder), str(self.processes), str(count), str(size), place]
        return count / float(output(command)) / 1000

    def find(self) -> float:
        """Look at each file below the folder, and count those of the hard kind."""
        count = self.amount(HARD_FILES)
        command = [str(self.metadata), "find", str(self.folder), "1", str(count), str(FILE_BYTES)]
        return (self.amount(EASY_FILES) + count) / float(output(command)) / 1000


def output(command: Sequence[str]) -> str:
    """Return what a program prints. Raise ScoreError if it fails or is missing."""
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ScoreError(f"{command[0]} is missing. Install the Debian package fio.") from None
    if done.returncode:
        status = done.returncode if done.returncode in (WRONG, USAGE) else MACHINE
        raise ScoreError(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr}", status)
    return done.stdout


def measured(load: Load) -> dict[str, float]:
    """Run all phases and return the parts, the two means and the score."""
    parts: dict[str, Any] = {}
    parts["easy_write_gibps"] = load.easy("write")
    parts["easy_create_kiops"] = load.files("create", "easy")
    parts["hard_write_gibps"] = load.hard("write")
    parts["hard_create_kiops"] = load.files("create", "hard")
    parts["find_kiops"] = load.find()
    parts["easy_read_gibps"] = load.easy("read")
    parts["easy_stat_kiops"] = load.files("stat", "easy")
    parts["hard_read_gibps"] = load.hard("read")
    parts["hard_stat_kiops"] = load.files("stat", "hard")
    parts["easy_delete_kiops"] = load.files("delete", "easy")
    parts["hard_small_read_kiops"] = load.files("read", "hard")
    parts["hard_delete_kiops"] = load.files("delete", "hard")
    return {**parts, **score(parts)}


def score(parts: dict[str, float]) -> dict[str, float]:
    """Return the geometric means of the rates of each unit, and the score, which is the geometric mean of the two."""
    bandwidth = statistics.geometric_mean([rate for name, rate in parts.items() if name.endswith("_gibps")])
    metadata = statistics.geometric_mean([rate for name, rate in parts.items() if name.endswith("_kiops")])
    means = {"bandwidth_gibps": bandwidth, "metadata_kiops": metadata}
    return {**means, "score": statistics.geometric_mean(means.values())}


def arguments(argv: Sequence[str] | None) -> Load:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("metadata", type=Path, help="the program metadata")
    parser.add_argument("folder", type=Path, help="an empty folder, or one that does not exist, on the measured disk")
    parser.add_argument("--processes", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--transfer-kib", type=int, default=256, help="of the easy files (default: %(default)s)")
    yes_or_no = argparse.BooleanOptionalAction
    parser.add_argument(
        "--direct", action=yes_or_no, default=False, help="easy files pass the page cache by (O_DIRECT)"
    )
    parser.add_argument("--preallocate", action=yes_or_no, default=False, help="reserve the easy files' space at first")
    parser.add_argument("--scale", type=int, default=1, help="divide all amounts by this (default: %(default)s)")
    load = Load(**vars(parser.parse_args(argv)))
    for name, value, most in (
        ("--processes", load.processes, MOST_PROCESSES),
        ("--transfer-kib", load.transfer_kib, 65536),
        ("--scale", load.scale, 1000),
    ):
        if not 1 <= value <= most:
            parser.error(f"{name}: {value} is not allowed. Use a number from 1 to {most}.")
    return load


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the folder is empty again afterwards."""
    load = arguments(argv)
    try:
        load.folder.mkdir(parents=True, exist_ok=True)
        if any(load.folder.iterdir()):
            raise ScoreError(f"the folder {load.folder} has files. Use an empty one.", USAGE)
        try:
            print(json.dumps(measured(load)))
        finally:
            for one in load.folder.iterdir():
                shutil.rmtree(one) if one.is_dir() else one.unlink()
    except (ScoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status if isinstance(error, ScoreError) else MACHINE
    return 0


if __name__ == "__main__":
    sys.exit(main())
