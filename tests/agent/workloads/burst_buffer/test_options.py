"""Tests of the command line: wrong values, limits of memory, paths."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.agent.workloads.burst_buffer.place import Place
from tests.agent.workloads.shared import MIB, run
from tests.factories.service import lack


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--ram-cache-size", "99999999"], 2, "--ram-cache-size: '99999999' is not allowed. Use 16 to "),
        (["--ram-cache-size", "15"], 2, "--ram-cache-size: '15' is not allowed. Use 16 to "),
        (["--flash-cache-size", "1G"], 2, "--flash-cache-size: '1G' is not allowed. Use 16 to 1048576"),
        (["--ram-cache-threshold", "101"], 2, "--ram-cache-threshold: '101' is not allowed. Use 1 to 100"),
        (["--flash-cache-threshold", "0"], 2, "--flash-cache-threshold: '0' is not allowed. Use 1 to 100"),
        (["--worker-threads", "-1"], 2, "--worker-threads: '-1' is not allowed. Use 1 to 24"),
        (["--polling-threads", ""], 2, "--polling-threads: '' is not allowed. Use 1 to 16"),
        (["--no-such-option"], 2, "usage: burst run"),
        (["--library", "/no-library"], 3, "cannot find the library /no-library: No such file"),
        (["--report", "/no-folder/report"], 3, "cannot write /no-folder/report: No such file"),
        (["--flash-cache-size", "1048576"], 3, "reserve --flash-cache-size, 1048576 MiB, in "),
    ],
)
def test_wrong_options_are_refused(place: Place, options: list[str], status: int, message: str) -> None:
    done = place.run("touch", place.target / "touched", options=options)
    assert done.returncode == status
    assert message in done.stderr
    assert not (place.target / "touched").exists()
    assert not (place.buffer / "flash").exists()


@contextmanager
def limited_group() -> Iterator[Path]:
    """Make a control group of 200 MiB; yield a group in it, in which processes may run."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, name, path = line.split(":", 2)
        first = name == "memory"
        outer = Path(f"/sys/fs/cgroup{'/memory' if first else ''}{path}") / f"burst-{os.getpid()}"
        limit = outer / ("memory.limit_in_bytes" if first else "memory.max")
        if not (first or number == "0") or not os.access(outer.parent, os.W_OK):
            continue
        with ExitStack() as groups:
            for group in (outer, outer / "inner"):
                group.mkdir()
                groups.callback(group.rmdir)
            if limit.exists():
                limit.write_text(str(200 * MIB))
                yield outer / "inner"
                return
    lack("no control group with a limit of memory can be made here")


TOO_MUCH = "--ram-cache-size: '201' is not allowed. Use 16 to 200.\n"


def test_a_control_groups_memory_bounds_the_ram_cache(place: Place) -> None:
    """The limit of a group above the process' own group counts."""
    with limited_group() as group:
        entering = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        done = run([*entering, *place.line("true", options=["--ram-cache-size", 201])])
        assert (done.returncode, done.stderr) == (2, f"burst: {TOO_MUCH}")
        assert run([*entering, *place.line("true", options=["--ram-cache-size", 200])]).returncode == 0


def test_a_limit_of_the_second_version_bounds_it_too(place: Place) -> None:
    """The test makes the files of version 2, because the machine may have groups of version 1."""
    script = """
        group=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
        mount -t tmpfs none /sys/fs/cgroup && mkdir -p "$group" && echo 209715200 >/sys/fs/cgroup/memory.max || exit 99
        [ "$group" = /sys/fs/cgroup/ ] || echo max >"$group/memory.max"
        exec "$@"
    """
    line = ["unshare", "-m", "bash", "-c", script, "bash", *place.line("true", options=["--ram-cache-size", 201])]
    done = run(line)
    if done.returncode == 99 or "unshare" in done.stderr:
        lack(f"no file system can be mounted here: {done.stderr}")
    assert (done.returncode, done.stderr) == (2, f"burst: {TOO_MUCH}")


def test_paths_with_quotes_and_spaces(built: Path, tmp_path: Path) -> None:
    """A shell reads the variables correctly, and other preloaded libraries stay. The loader allows no spaces in the
    path of the library.
    """
    folder = tmp_path / "it's a"
    folder.mkdir()
    line = f"""set -e; eval "$(LD_PRELOAD=/no/such.so {built}/burst start --buffer "$0/buffer" "$0")"
        echo "$BURST_DIRECTORY $BURST_BUFFER $LD_PRELOAD"; unset LD_PRELOAD; {built}/burst stop --buffer "$0/buffer\""""
    done = run(["bash", "-c", line, folder])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{folder} {folder}/buffer {built}/libburst.so:/no/such.so"
    shutil.copy(built / "libburst.so", folder)
    done = run([built / "burst", "run", "--library", folder / "libburst.so", "--buffer", folder / "b", folder, "true"])
    assert (done.returncode, "Use a path without spaces and colons, as LD_PRELOAD needs." in done.stderr) == (3, True)


def test_a_directory_that_does_not_exist(place: Place) -> None:
    for name, why in (("nowhere", "No such file or directory"), ("file", "Not a directory")):
        (place.folder / "file").touch()
        done = run([place.built / "burst", "run", "--buffer", place.buffer, place.folder / name, "true"])
        assert done.returncode == 3
        assert done.stderr == f"burst: cannot use the directory {place.folder / name}: {why}\n"
    for arguments in (["run"], ["start", "--buffer", place.buffer], ["stop"], ["other"], []):
        assert run([place.built / "burst", *arguments]).returncode == 2
    done = run([place.built / "burst", "stop", "--buffer", place.buffer])
    assert (done.returncode, done.stderr) == (3, f"burst: nothing runs on the buffer {place.buffer}\n")
