"""A machine in another network: a namespace of the kernel, with a cable to this one that a test disturbs."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.factories.patience import wait_for
from tests.factories.service import lack, require_program

_TABLE = "inet disturbed"


@dataclass(frozen=True)
class FarMachine:
    """`entering`: the beginning of a command line that runs a command there.

    `here` and `there`: the addresses of this machine and of that one.
    """

    entering: list[str]
    here: str
    there: str

    def lose(self, *, arriving: float = 0.0, leaving: float = 0.0) -> None:
        """Drop shares of the packets that arrive there and that leave it, without any message to the sender."""
        rules = [f"add table {_TABLE}", f"delete table {_TABLE}", f"add table {_TABLE}"]
        for hook, share in (("input", arriving), ("output", leaving)):
            rules.append(f"add chain {_TABLE} {hook} {{ type filter hook {hook} priority 0; }}")
            chance = "" if share == 1.0 else f"numgen random mod 1000 < {round(1000 * share)}"
            rules.append(f"add rule {_TABLE} {hook} {chance} drop")
        subprocess.run([*self.entering, "nft", "\n".join(rules)], check=True)


@contextmanager
def far_machine() -> Iterator[FarMachine]:
    """Make the namespace and the cable. Only root may; for others the test is skipped."""
    require_program("nft", "nftables")
    require_program("ip", "iproute2")
    if os.geteuid() != 0:
        lack("only root makes network namespaces")
    # Tests that run at the same time have other numbers.
    number = os.getpid()
    near, subnet = f"tt{number}", f"10.{200 + number // 256 // 256 % 50}.{number // 256 % 256}.{number % 256 & 0xFC}"
    base, _, last = subnet.rpartition(".")
    here, there = f"{base}.{int(last) + 1}", f"{base}.{int(last) + 2}"
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        # unshare becomes sleep after it has made the namespace
        wait_for(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n", "a namespace")
        machine = FarMachine(["nsenter", "--net", "--target", str(holder.pid)], here, there)
        script = f"""set -e
            ip link add {near} type veth peer name far netns {holder.pid}
            ip address add {here}/30 dev {near}
            ip link set {near} up"""
        subprocess.run(["sh", "-c", script], check=True)
        script = f"set -e; ip address add {there}/30 dev far; ip link set far up; ip link set lo up"
        subprocess.run([*machine.entering, "sh", "-c", script], check=True)
        yield machine
    finally:
        # The cable goes with the namespace.
        holder.kill()
        holder.wait()
