"""A real Slurm for tests: munged, slurmctld and a slurmd for each of some virtual nodes, on ports of their own."""

import getpass
import os
import secrets
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from service.embedded.processes import Child, stop
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program

NODES = 4
FREEZER = Path("/sys/fs/cgroup/freezer")
CONFIGURATION = """
ClusterName=trimtab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# a job that is requeued waits until its old credential has expired
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType={proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
# virtual nodes may have more processors than the machine
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=3
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
PartitionName=short Nodes=ALL MaxTime=1
"""


class Slurm:
    """A cluster on this machine, its files in `folder`; `more` is said in its slurm.conf, too."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder, self._more = folder, more
        self.configuration = folder / "slurm.conf"
        ports = [free_port() for _ in range(NODES)]
        # processes are tracked by the node's name, which therefore belongs to this cluster alone
        self.nodes = [f"node{port}" for port in ports]
        self._write(ports)
        controller = require_program("slurmctld", "slurm-wlm")
        daemon = require_program("slurmd", "slurm-wlm")
        self._munge = self._child("munged", self._munged())
        self.controller = self._child("slurmctld", [controller, "-D"])
        self.daemons = [self._child(f"slurmd-{node}", [daemon, "-D", "-N", node]) for node in self.nodes]

    def start(self) -> None:
        """Start the cluster and wait until every node is idle."""
        self._munge.start()
        wait_for((self.folder / "munge.sock").exists, "munged listens")
        self.controller.start()
        for child in self.daemons:
            child.start()
        try:
            wait_for(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(NODES), "nodes idle")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def stop(self) -> None:
        """End every job and every daemon."""
        with suppress(AssertionError):
            self.settle()
        stop([*self.daemons, self.controller])
        stop([self._munge])
        for node in self.nodes:
            for place, _, _ in os.walk(FREEZER / f"slurm_{node}", topdown=False):
                with suppress(OSError):
                    Path(place).rmdir()

    def restart_controller(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Stop slurmctld, run a function without it, and start it again with its state."""
        stop([self.controller])
        meanwhile()
        self.controller.start()

    def settle(self) -> None:
        """End every job and make every node available again."""
        self.run("scancel", f"--user={os.getuid()}")
        wait_for(self._has_no_job, "no job is left")
        if self.run("sinfo", "-h", "-t", "drain,down,drng,fail", "-o", "%D").strip():
            self.run("scontrol", "update", f"nodename={','.join(self.nodes)}", "state=resume")

    def run(self, *argv: str) -> str:
        """Run a program of Slurm and return its output."""
        return self._ran(*argv).stdout

    def jobs(self) -> Mapping[str, tuple[str, str, str]]:
        """Return each job and array task that slurmctld remembers, with its state, name and working directory."""
        lines = self.run("squeue", "-h", "--array", "--states=all", "-o", "%i|%T|%j|%Z").splitlines()
        parts = [line.split("|") for line in lines]
        return {number: (state, name, folder) for number, state, name, folder in parts}

    def logs(self) -> str:
        """Return the end of every log, for the message of a failing test."""
        return "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in sorted(self.folder.glob("*.log")))

    def _ran(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, env=self._environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def _has_no_job(self) -> bool:
        """Return whether slurmctld lists no job. A squeue without an answer prints nothing, either."""
        done = self._ran("squeue", "-h")
        return done.returncode == 0 and not done.stdout

    def _write(self, ports: Sequence[int]) -> None:
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        # control groups where they may be used, as on most clusters
        cgroup = os.getuid() == 0 and os.access(FREEZER, os.W_OK) and not os.statvfs(FREEZER).f_flag & os.ST_RDONLY
        host = socket.gethostname().partition(".")[0]
        where = f"CPUs=4 NodeHostname={host} NodeAddr=127.0.0.1"
        nodes = [f"NodeName={node} Port={port} {where}" for node, port in zip(self.nodes, ports, strict=True)]
        # whether Slurm ends every process of a job, those included whose parents were killed
        self.tracks_all = cgroup
        self.configuration.write_text(
            CONFIGURATION.format(
                host=host,
                port=free_port(),
                user=getpass.getuser(),
                folder=self.folder,
                proctrack="proctrack/cgroup" if cgroup else "proctrack/linuxproc",
                nodes="\n".join(nodes),
            )
            + self._more
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n")

    def _munged(self) -> list[str]:
        options = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        # --force: the folder's parents may be writable for others, as /tmp is
        program = require_program("munged", "munge")
        return [program, "--foreground", "--force", f"--socket={self.folder}/munge.sock", *options]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.configuration)}

    def _child(self, name: str, argv: Sequence[str]) -> Child:
        return Child(name, argv, self._environment(), self.folder / f"{name}.log")


@contextmanager
def slurm_cluster(folder: Path, more: str = "") -> Iterator[Slurm]:
    """Run a cluster."""
    for program in ("sbatch", "squeue", "scancel", "scontrol"):
        require_program(program, "slurm-wlm")
    slurm = Slurm(folder, more)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
