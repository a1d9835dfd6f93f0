"""Tests of the burst buffer under Slurm's burst_buffer/lua, for which jobs ask by directives in their scripts."""

import getpass
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.factories.patience import wait_for
from tests.factories.service import lack, require_program
from tests.factories.slurm import Slurm, slurm_cluster
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.slurm_states import refusal

SOURCES = Path(__file__).parents[4] / "agents" / "workloads" / "burst-buffer" / "slurm"
MIB = 1 << 20
SMALL = "ram-cache-size=16 flash-cache-size=16"

WRITE = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
for number in range(24): os.write(file, bytes([number]) * (1 << 20))
"""


def digest(content: bytes) -> str:
    """Return a digest to compare instead of the content: pytest would take minutes to explain a difference."""
    return hashlib.sha256(content).hexdigest()


CONTENT = digest(b"".join(bytes([number]) * MIB for number in range(24)))


class Place:
    """A cluster with the burst buffer, and an ordinary user: Slurm gives no burst buffer to jobs of root."""

    def __init__(self, slurm: Slurm, folder: Path, user: str) -> None:
        self.slurm, self.folder, self.user = slurm, folder, user
        self.burst, self.state = folder / "installed" / "burst", folder / "installed" / "state"
        self.buffers, self.scratch = folder / "buffers", folder / "scratch"
        (folder / "write.py").write_text(WRITE)

    def directory(self, name: str) -> Path:
        """Make a directory that belongs to the user."""
        path = self.scratch / name
        path.mkdir()
        shutil.chown(path, self.user)
        return path

    def submit(self, *lines: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Submit a script of these lines as the user."""
        command = ["sbatch", "--parsable", f"--chdir={self.scratch}", f"--output={self.scratch}/%j.out", *options]
        root = os.getuid() == 0
        return subprocess.run(
            command,
            input="\n".join(["#!/bin/sh", *lines, ""]),
            env={**os.environ, "SLURM_CONF": str(self.slurm.configuration)},
            cwd=self.scratch,
            capture_output=True,
            text=True,
            check=False,
            user=self.user if root else None,
            extra_groups=[] if root else None,
        )

    def submitted(self, *lines: str, options: tuple[str, ...] = ()) -> str:
        """Submit such a script, which Slurm accepts; return the number of the job."""
        done = self.submit(*lines, options=options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, directory: Path, *then: str, keys: str = SMALL, options: tuple[str, ...] = ()) -> str:
        """Submit a job that writes 24 MiB, which is more than the RAM cache holds, and then runs other lines."""
        lines = [f"#BB_LUA directory={directory}", f"#BB_LUA {keys}"]
        writing = f"python3 -IS {self.folder}/write.py {directory}/data && echo written"
        return self.submitted(*lines, writing, *then, options=options)

    def said(self, job: str, what: str) -> str:
        """Return what squeue prints about a job, in its format `what`."""
        return self.slurm.run("squeue", "-h", "--states=all", "-j", job, "-o", what).strip()

    def output(self, job: str) -> str:
        """Return what a job has printed."""
        path = self.scratch / f"{job}.out"
        return path.read_text() if path.exists() else ""

    def ended(self, job: str, state: str) -> None:
        """Wait until a job has ended in this state, and nothing of its buffer is left."""
        wait_for(lambda: self.said(job, "%T") == state, lambda: f"job {job} is {state}: {self.slurm.logs()}")
        wait_for(lambda: not self.left(job), lambda: f"nothing is left of job {job}: {self.left(job)}")

    def left(self, job: str) -> list[object]:
        """Return the files and processes of a job's buffer."""
        files = [*self.state.glob(f"{job}.*"), *self.buffers.glob(job)]
        return [*files, *self.processes(job)]

    def kill(self, job: str) -> None:
        """Kill the guardian and the daemon of a job."""
        kill(self.processes(job))

    def processes(self, job: str) -> list[psutil.Process]:
        """Return the guardian and the daemon of a job, in any order."""
        return [process for process in running() if str(self.buffers / job) in (process.info["cmdline"] or [])]

    def clear(self) -> None:
        """End all jobs and their buffers. After a test that has passed there are none."""
        jobs = self.slurm.run("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.slurm.run("scancel", "--hurry", *jobs)
            with suppress(AssertionError):
                wait_for(lambda: not self.slurm.run("squeue", "-h"), "no job is left")
        for path in self.buffers.glob("*"):
            self.kill(path.name)
            shutil.rmtree(path)
        for path in self.state.iterdir():
            path.unlink()


def running() -> list[psutil.Process]:
    """Return all processes of the machine, with their command lines and working directories."""
    return list(psutil.process_iter(["cmdline", "cwd"]))


def kill(processes: list[psutil.Process]) -> None:
    """Kill processes, which may end at the same time."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.fixture(scope="module")
def cluster(programs_start: None) -> Iterator[Place]:
    """A cluster for all tests. When it ends, so does every process that has begun in its folder."""
    if not [
        *Path("/usr").glob("lib*/slurm*/burst_buffer_lua.so"),
        *Path("/usr").glob("lib/*/slurm*/burst_buffer_lua.so"),
    ]:
        lack("this Slurm has no burst_buffer/lua (Debian package slurm-wlm-basic-plugins)")
    require_program("setpriv", "util-linux")
    user = "nobody" if os.getuid() == 0 else getpass.getuser()
    # other users must be able to read the folder
    folder = Path(tempfile.mkdtemp(prefix="trimtab-burst-"))
    folder.chmod(0o755)
    command: list[str | Path] = [
        SOURCES / "install.sh",
        folder / "installed",
        f"BUFFERS={folder}/buffers",
        "RAM_CACHE_MOST=64",
    ]
    done = subprocess.run([*command, "FLASH_CACHE_MOST=1048576"], capture_output=True, text=True, check=True)
    shutil.copy(folder / "installed" / "burst_buffer.lua", folder)
    for name in ("scratch", "notes"):
        (folder / name).mkdir()
        shutil.chown(folder / name, user)
    try:
        with slurm_cluster(folder, done.stdout) as slurm:
            place = Place(slurm, folder, user)
            try:
                yield place
            finally:
                place.clear()
    finally:
        kill([process for process in running() if is_of(process, folder)])
        shutil.rmtree(folder, ignore_errors=True)


def is_of(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process works in a folder, or has a path below it in its command line."""
    words = [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
    return any(f"{word}/".startswith(f"{folder}/") for word in words)


@pytest.fixture
def place(cluster: Place) -> Iterator[Place]:
    """The cluster. A test that fails leaves no job and no buffer to the next test."""
    yield cluster
    cluster.clear()


def test_a_job_has_a_buffer_of_its_own(place: Place) -> None:
    directory = place.directory("own")
    seen = place.scratch / "seen"
    job = place.write(
        directory,
        'echo "$BURST_BUFFER $BURST_DIRECTORY"',
        'ls "$BURST_BUFFER"',
        f"until [ -e {seen} ]; do sleep 0.1; done",
        keys=f"{SMALL} worker-threads=3",
    )
    wait_for(lambda: "journal" in place.output(job), lambda: f"the job has written: {place.slurm.logs()}")
    running = place.processes(job)
    assert running
    assert {process.username() for process in running} == {place.user}
    assert all("--worker-threads=3" in process.cmdline() for process in running)
    seen.touch()
    place.ended(job, "COMPLETED")
    assert place.output(job).split() == [
        *("written", f"{place.buffers}/{job}", str(directory), "flash", "journal", "lock", "socket")
    ]
    assert digest((directory / "data").read_bytes()) == CONTENT


def test_the_shipped_component_has_its_buffer_from_slurm(place: Place, tmp_path: Path) -> None:
    """The directive of a trial starts a buffer with the trial's values, and the command uses that buffer."""
    work = place.directory("trial")
    component = load(SOURCES.parent / "component.yaml", Generator(tmp_path))
    options: dict[str, Any] = {"required": [], "timeout": 0, "cache": place.folder / "builds", "cache_limit": 1}
    values = {"ram-cache-size": 16, "worker-threads": 3}
    spec = prepare(component, "checkpoint", values, title="t", work=work, **options)
    assert spec.build
    Path(spec.build.entry).mkdir(parents=True)
    for argv in spec.build.commands:
        subprocess.run(argv, check=True)
    shutil.chown(work / "target", place.user)
    command = [{"16": "2"}.get(item, item) for item in spec.command]
    seen = place.scratch / "trial-seen"
    job = place.submitted(*spec.directives, shlex.join(command), f"until [ -e {seen} ]; do sleep 0.1; done")
    wait_for(lambda: '"bytes"' in place.output(job), lambda: f"the application has ended: {place.slurm.logs()}")
    wait_for((work / "report").exists, "burst has reported")
    expected = {name: parameter.default for name, parameter in component.parameters.items()} | values
    wanted = {f"--{name}={value}" for name, value in expected.items()}
    running = place.processes(job)
    assert running
    assert all(wanted <= set(process.info["cmdline"]) for process in running)
    # the command has started no other buffer
    assert list((work / "buffer").iterdir()) == []
    seen.touch()
    place.ended(job, "COMPLETED")
    assert json.loads((work / "report").read_text())["daemon_survived"] is True


def test_the_directory_has_all_that_a_cancelled_job_has_written(place: Place) -> None:
    directory = place.directory("cancelled")
    job = place.write(directory, "sleep 1000")
    wait_for(lambda: "written" in place.output(job), "the job has written")
    place.slurm.run("scancel", job)
    place.ended(job, "CANCELLED")
    assert digest((directory / "data").read_bytes()) == CONTENT


def test_jobs_with_one_directory_run_one_after_the_other(place: Place) -> None:
    """A directory and one below it have one buffer at a time. A job that is cancelled while it waits leaves nothing.

    The jobs write down their order outside of what they buffer. One job that buffers the whole directory has begun
    before the others are submitted; Slurm may start these in any order.
    """
    outer = place.directory("shared")
    inner = place.directory("shared/inner")
    order, gate = place.folder / "notes" / "order", place.folder / "notes" / "gate"
    # A file of a job that does not exist any more, since Slurm may end a teardown together with the setup.
    (place.state / "99999.wanted").write_text(f"{inner}\n")
    mine = [f"echo begin >>{order}", f"until [ -e {gate} ]; do sleep 0.1; done", f"echo end >>{order}"]
    jobs = [place.write(outer, *mine)]
    wait_for(order.exists, lambda: f"the first job runs: {place.slurm.logs()}")
    jobs += [place.write(inner, *mine), place.write(inner, *mine), place.write(outer, *mine)]
    waiting = place.write(inner, f"echo never >>{order}")
    wait_for((place.state / f"{waiting}.waiting").exists, "the last job waits")
    place.slurm.run("scancel", waiting)
    place.ended(waiting, "CANCELLED")
    gate.touch()
    for job in jobs:
        place.ended(job, "COMPLETED")
    assert order.read_text().split() == ["begin", "end"] * 4
    assert not place.left("99999")
    for directory in (inner, outer):
        assert digest((directory / "data").read_bytes()) == CONTENT


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        (
            ["directory=/tmp ram-cache=64"],
            "#BB_LUA: 'ram-cache' is not allowed. Use one of directory, flash-cache-size, ",
        ),
        (["directory=/tmp", "64"], "#BB_LUA: '64' is not allowed. Use KEY=VALUE with one of the keys directory, "),
        (["directory=/tmp ram-cache-size=65"], "ram-cache-size: '65' is not allowed. Use 16 to 64"),
        (["directory=/tmp ram-cache-size=1e1"], "ram-cache-size: '1e1' is not allowed. Use 16 to 64"),
        (["directory=/tmp worker-threads=-1"], "worker-threads: '-1' is not allowed. Use 1 to 24"),
        (["directory=/tmp flash-cache-threshold=101"], "flash-cache-threshold: '101' is not allowed. Use 1 to 100"),
        (
            ["directory=/tmp worker-threads=2", "worker-threads=3"],
            "worker-threads is given twice. Give each key once in a script.",
        ),
        (["ram-cache-size=64"], "directory is missing. Use an absolute path without spaces"),
        (["directory=scratch"], "directory: 'scratch' is not allowed. Use an absolute path without spaces"),
        (["directory=/tmp/$(id)'"], "directory: '/tmp/$(id)'' is not allowed. Use an absolute path without spaces"),
        (
            ["directory=/no-such-directory"],
            "directory: '/no-such-directory' is not allowed. Use a directory that exists",
        ),
        (["directory=/etc/passwd"], "directory: '/etc/passwd' is not allowed. Use a directory that exists"),
    ],
)
def test_submission_refuses_wrong_directives(place: Place, directives: list[str], message: str) -> None:
    done = place.submit(*(f"#BB_LUA {line}" for line in directives), "true")
    assert done.returncode == 1
    assert f"burst buffer: {message}" in done.stderr
    # only a number out of range is a limit that another trial may keep
    assert (refusal(done.stderr) == "too much") == (re.search(r"\d+ to \d+$", message) is not None)


def test_a_job_shows_why_it_cannot_get_its_buffer(place: Place) -> None:
    """No job begins without its buffer, and Slurm takes no node out of service."""
    job = place.write(place.directory("large"), keys="flash-cache-size=1048576")
    wide = place.write(place.directory("wide"), options=("--nodes=2",))
    place.ended(job, "CANCELLED")
    about = place.slurm.run("scontrol", "show", "job", job)
    assert "AdminComment=burst: cannot reserve --flash-cache-size, 1048576 MiB, in " in about
    wait_for(lambda: "pre_run" in place.said(wide, "%r"), "the other is held")
    assert "nodes: '2' is not allowed. Use 1" in place.slurm.run("scontrol", "show", "job", wide)
    place.slurm.run("scancel", wide)
    place.ended(wide, "CANCELLED")
    assert (place.output(job), place.output(wide)) == ("", "")
    assert place.slurm.run("sinfo", "-h", "-t", "drain,down,drng,fail", "-o", "%D").strip() == ""


def test_prolog_recovers_the_data_of_a_requeued_job(place: Place) -> None:
    """All processes of its buffer were killed on the same node."""
    directory, own = place.directory("requeued"), place.buffers / "987654"
    (place.state / "987654.wanted").write_text(
        f"{directory}\n--ram-cache-size=16\n--flash-destagers=1\n--latency=20000\n"
    )
    owner = directory.stat()
    names = {
        "BURST_BUFFER": own,
        "BURST_DIRECTORY": directory,
        "LD_PRELOAD": place.folder / "installed" / "libburst.so",
    }

    def run(when: str) -> None:
        job = {"SLURM_JOB_ID": "987654", "SLURM_JOB_UID": str(owner.st_uid), "SLURM_SCRIPT_CONTEXT": f"{when}_slurmd"}
        subprocess.run([place.folder / "installed" / "node.sh"], env={**os.environ, **job}, check=True)

    run("prolog")
    writing = ["python3", "-ISc", WRITE, str(directory / "data")]
    environment = {**os.environ, **{name: str(value) for name, value in names.items()}}
    subprocess.run(writing, env=environment, user=owner.st_uid, check=True)
    place.kill("987654")
    wait_for(lambda: not place.processes("987654"), "all are gone")
    assert (own / "journal").exists()
    run("prolog")
    assert digest((directory / "data").read_bytes()) == CONTENT
    run("epilog")
    assert (place.state / "987654.stopped").read_text() == "all is in the directory\n"
    for path in place.state.glob("987654.*"):
        path.unlink()
    assert place.left("987654") == []


def test_the_data_of_a_killed_daemon_is_kept_for_recover(place: Place) -> None:
    directory = place.directory("killed")
    seen = place.scratch / "killed-seen"
    job = place.write(directory, f"until [ -e {seen} ]; do sleep 0.1; done", keys=f"{SMALL} flash-destagers=1")
    wait_for(lambda: "written" in place.output(job), "the job has written")
    place.kill(job)
    seen.touch()
    wait_for(lambda: "recover --buffer" in place.slurm.run("scontrol", "show", "job", job), "it says how")
    own = place.buffers / job
    done = subprocess.run([place.burst, "recover", "--buffer", own], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert digest((directory / "data").read_bytes()) == CONTENT
    shutil.rmtree(own)
    place.slurm.run("scancel", "--hurry", job)
    place.ended(job, "COMPLETED")
