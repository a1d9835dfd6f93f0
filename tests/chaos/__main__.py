"""Faults of all kinds, overlapping, against a whole service at work: `make chaos ARGS="--faults 1000 --seed 1"`.

A service as `trimtab-service up` runs it, an agent and several clients work on studies of cheap and of costly
algorithms. With --hosted there are PostgreSQL, Redis, two gRPC processes on one port, two workers, beat and web, and
each is restarted as a service manager does it. With --attack another tenant sends all the time what once stopped the
service for everybody. The time of an ask of a study with `gp` is then measured alone, during these attacks, and
with faults as well; the attacks may make it three times as long. With --slurm a second agent runs its trials on a real
Slurm, and with --network packets are lost between the service and its agent (or, with --hosted, its database).
Processes are killed and stopped at random, two at a time, as long as there are results. The studies take turns with
pruning, resampling and a final check. All the time they are read: a finished trial never changes, no trial disappears,
and each has the value of its own configuration. When a study has ended, the next one begins. In the end the faults
stop, everything completes, and each result that was acknowledged to a client is there, once. The table has the times
until the next trial had ended after a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import trimtab
from tests.chaos import asks, faults, studies, systems, truth
from tests.chaos.asks import Asks
from tests.chaos.faults import Fault
from tests.chaos.systems import System
from tests.factories.agent import RealAgent
from tests.factories.network import FarMachine, far_machine
from tests.factories.slurm import Slurm

CLIENTS = 2
# Trials of a study that agents run at the same time.
PARALLELISM = 3
# Faults that may be at work at the same time.
HANDS = 2
# After so many seconds without a result there are no further faults until the next one: on a busy machine a worker
# starts more slowly than it is killed.
CALM = 45.0
# The longest wait for the service in seconds; a longer one is a failure.
PATIENCE = 600.0
# It runs a service with its data in a folder, and a part of it on another machine.
Run = Callable[[Path, FarMachine | None], AbstractContextManager[System]]


class Chaos:
    """One run in a folder."""

    def __init__(
        self, folder: Path, system: Run, count: int, seed: int, *, network: bool, slurm: bool, attack: bool
    ) -> None:
        self._folder = folder
        self._system = system
        self._network, self._slurm, self._attack = network, slurm, attack
        self.asks: Asks | None = None
        self.attacks: dict[str, int] = {}
        self._count = count
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._errors: list[BaseException] = []
        self._clients: list[subprocess.Popen[bytes]] = []
        self._studies: list[tuple[str, truth.Watched]] = []
        # The studies of clients that have not ended. Clients work on the first.
        self._told: list[str] = []
        self.faults: list[Fault] = []
        self.progress: list[float] = []
        """Times of the monotonic clock: of the beginning, and when new results were seen."""

    def run(self, shown: Progress) -> None:
        """Run all faults, and check everything. Raises AssertionError."""
        components = studies.write_component(self._folder / "components")
        with ExitStack() as around:
            machine = around.enter_context(far_machine()) if self._network else None
            cluster = around.enter_context(systems.slurm(self._folder / "slurm")) if self._slurm else None
            service = around.enter_context(self._system(self._folder, machine))
            agents = [self._agent("local", service, components, service.agent_entering)]
            if cluster is not None:
                agents.append(self._agent("slurm", service, components))
            for agent in agents:
                around.enter_context(agent)
            with trimtab.Client(
                service.grpc_address, token=service.token, retry_seconds=PATIENCE, plaintext=True
            ) as client:
                counts = self._begin_attack(around, client, service) if self._attack else None
                threads = [
                    threading.Thread(target=self._guarded, args=(work,), daemon=True)
                    for work in (
                        *[lambda: self._hand(service, agents, cluster, shown)] * HANDS,
                        lambda: self._keep_agents(agents),
                        lambda: self._keep_clients(service),
                        lambda: self._watch_and_end(client),
                        *([self._keep_asking] if self._attack else []),
                    )
                ]
                self._begin_studies(client)
                self.progress.append(time.monotonic())
                for thread in threads:
                    thread.start()
                try:
                    self._keep_service(service, cluster)
                finally:
                    self._over.set()
                    for thread in threads:
                        thread.join(PATIENCE)
                    for process in self._clients:
                        process.kill()
                        process.wait()
                    if counts is not None and counts.exists():
                        self.attacks = json.loads(counts.read_text())
        if self._errors:
            raise self._errors[0]
        if self.asks is not None:
            self.asks.check()

    # Attacks

    def _begin_attack(self, around: ExitStack, client: trimtab.Client, service: System) -> Path:
        """Measure asks alone and during the attacks, which then go on. Return the file with the answers to them."""
        self.asks = Asks(client)
        self.asks.warm_up()
        self.asks.measure(asks.ALONE, until=lambda count: count >= asks.ASKS, meanwhile=service.keep)
        counts = around.enter_context(systems.attacker(self._folder, service))
        self.asks.measure(asks.ATTACKED, until=lambda count: count >= asks.ASKS, meanwhile=service.keep)
        return counts

    def _keep_asking(self) -> None:
        assert self.asks is not None
        self.asks.measure(asks.WITH_FAULTS, until=lambda _: self._over.is_set(), meanwhile=lambda: None)

    def _agent(self, runner: str, service: System, components: Path, entering: Sequence[str] = ()) -> RealAgent:
        folder = self._folder / f"agent-{runner}"
        folder.mkdir()
        options = ["--runner", runner, "--plaintext"]
        return RealAgent(
            folder,
            service.grpc_address,
            service.token_file,
            components,
            slots=2,
            name=runner,
            options=options,
            entering=entering,
        )

    # Faults

    def _hand(self, service: System, agents: Sequence[RealAgent], cluster: Slurm | None, shown: Progress) -> None:
        task = shown.tasks[0].id
        targets = dict(service.targets)
        targets["agent"] = lambda: [agents[0].pid]
        targets["client"] = lambda: [one.pid for one in self._clients if one.poll() is None][:1]
        if cluster is not None:
            targets["agent of Slurm"] = lambda: [agents[1].pid]
            targets["slurmctld"] = lambda: systems.pids(cluster.controller)
            targets["slurmd"] = lambda: systems.pids(cluster.daemons[0])
        while not self._over.is_set():
            if time.monotonic() - self.progress[-1] > CALM:
                time.sleep(0.1)
                continue
            with self._lock:
                if len(self.faults) >= self._count:
                    return
                kind, act = faults.choose(self._random, targets, service.networks)
                pause = self._random.uniform(0.2, 4.0)
                self.faults.append(Fault(kind, time.monotonic()))
                with (self._folder / "faults.log").open("a") as log:
                    log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} {len(self.faults)} {kind}\n")
            act()
            shown.advance(task)
            time.sleep(pause)

    # What a service manager and users would do

    def _keep_service(self, service: System, cluster: Slurm | None) -> None:
        # In the main thread: the kernel ends the processes that a thread has started when this thread ends.
        while not self._over.wait(0.1):
            service.keep()
            for child in [cluster.controller, *cluster.daemons] if cluster else []:
                child.keep_alive()

    def _keep_agents(self, agents: Sequence[RealAgent]) -> None:
        while not self._over.wait(0.5):
            for agent in agents:
                if not agent.running():
                    # It may be killed before it has registered. Then it is started once more.
                    with suppress(AssertionError):
                        agent.start()

    def _keep_clients(self, service: System) -> None:
        number = 0
        while not self._over.is_set():
            self._clients = [one for one in self._clients if one.poll() is None]
            while (name := next(iter(self._told), None)) is not None and len(self._clients) < CLIENTS:
                number += 1
                notes = self._folder / f"{name}-{number}.notes"
                argv = [sys.executable, "-m", "tests.chaos.client"]
                argv += [service.grpc_address, service.token, name, str(notes)]
                with (self._folder / "clients.log").open("a") as log:
                    self._clients.append(subprocess.Popen(argv, stdout=log, stderr=log))
            self._over.wait(0.5)

    # Studies

    def _begin_studies(self, client: trimtab.Client) -> None:
        """Begin a study on the agent and one of the clients."""
        number = len(self._studies) // 2
        objectives = [trimtab.Minimize("value")]
        with self._lock:
            algorithm = self._random.choice(studies.ALGORITHMS)
        kind = list(studies.METHODS)[number % len(studies.METHODS)]
        method = studies.METHODS[kind]
        component = client.component(studies.COMPONENT)
        shared: dict[str, Any] = {
            "objectives": objectives,
            "algorithm": algorithm,
            "max_trials": studies.BUDGET,
            "resampling": "none",
            "final_check": False,
            "load_if_exists": True,
            **method.options,
        }
        names = [f"{one}-{number}-{kind}" for one in ("run", "told")]
        client.create_study(
            names[0],
            component=studies.COMPONENT,
            application=studies.APPLICATION,
            placement=trimtab.Placement(exclusive=False),
            parallelism=PARALLELISM,
            **shared,
        )
        client.create_study(names[1], space=component.space, **shared)
        with self._lock:
            for name in names:
                self._studies.append((name, truth.Watched(name, method)))
            self._told.append(names[1])

    def _watch_and_end(self, client: trimtab.Client) -> None:
        self._watch(client)
        self._over.set()

    def _watch(self, client: trimtab.Client) -> None:
        """Read the studies over and over. Return when the faults are over, all studies have ended, and each was read.

        Studies that have ended are read in turns, one each time.
        """
        finished, since = 0, time.monotonic()
        ended: list[tuple[str, truth.Watched]] = []
        while True:
            open_ = [one for one in self._studies if one not in ended]
            for name, watched in [*open_, *ended[:1]]:
                study = client.get_study(name)
                watched.see(study.trials())
                if study.state.finished:
                    if name in self._told:
                        self._told.remove(name)
                    if (name, watched) in ended:
                        ended.remove((name, watched))
                    watched.conclude(truth.notes(self._folder, name))
                    ended.append((name, watched))
            open_studies = len(self._studies) - len(ended)
            total = sum(watched.count for _, watched in self._studies)
            now = time.monotonic()
            if total != finished:
                finished, since = total, now
                self.progress.append(now)
            assert now - since < PATIENCE, f"no trial has ended for {PATIENCE:.0f} s"
            with self._lock:
                over = len(self.faults) >= self._count
            if open_studies == 0 and over:
                break
            if open_studies < 2 and not over:
                self._begin_studies(client)
            if self._over.wait(0.2):
                return
        for name, watched in self._studies:
            watched.see(client.get_study(name).trials())
            watched.conclude(truth.notes(self._folder, name))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
            self._over.set()

    # Report

    def table(self) -> Table:
        """Return the recovery times by kind of fault."""
        table = Table(title=f"{len(self.faults)} faults: seconds until the next trial had ended", title_justify="left")
        for heading in ("fault", "times", "median", "90th percentile", "longest"):
            table.add_column(heading, justify="left" if heading == "fault" else "right")
        for kind in sorted({fault.kind for fault in self.faults}):
            found = [self._recovery(fault) for fault in self.faults if fault.kind == kind]
            tenths = statistics.quantiles(found, n=10, method="inclusive") if len(found) > 1 else found * 9
            table.add_row(
                kind, str(len(found)), *(f"{one:.1f}" for one in (statistics.median(found), tenths[8], max(found)))
            )
        return table

    def tables(self) -> list[Table]:
        """Return all tables: recovery times, and with attacks the times of asks and the answers to the attacks."""
        if self.asks is None:
            return [self.table()]
        answers = Table(title="Answers to the attacks", title_justify="left")
        for heading in ("attack: status", "times"):
            answers.add_column(heading)
        for kind, times in self.attacks.items():
            answers.add_row(kind, str(times))
        return [self.table(), self.asks.table(), answers]

    def _recovery(self, fault: Fault) -> float:
        return next((at for at in self.progress if at > fault.at), time.monotonic()) - fault.at


def main() -> None:
    """Run the faults and print the table. Exit with 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000, metavar="N", help="number of faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the faults (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for logs and notes (default: a temporary one)")
    parser.add_argument("--hosted", action="store_true", help="hosted mode instead of `trimtab-service up`")
    parser.add_argument("--attack", action="store_true", help="with another tenant that attacks all the time")
    parser.add_argument("--network", action="store_true", help="lose packets, too, which takes root and nftables")
    parser.add_argument("--slurm", action="store_true", help="run trials on a real Slurm, too, and hit it")
    given = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="trimtab-chaos-") as temporary:
        folder = given.keep or Path(temporary)
        # PostgreSQL may run as another user.
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        chaos = Chaos(
            folder,
            systems.hosted if given.hosted else systems.embedded,
            given.faults,
            given.seed,
            network=given.network,
            slurm=given.slurm,
            attack=given.attack,
        )
        with Progress(console=console) as shown:
            shown.add_task("faults", total=given.faults)
            try:
                chaos.run(shown)
            except AssertionError as error:
                console.print(*chaos.tables(), sep="\n")
                console.print(f"[red]Seed {given.seed}, after {len(chaos.faults)} faults:[/red] {error}")
                raise SystemExit(1) from None
        console.print(*chaos.tables(), sep="\n")
        console.print("No acknowledged result was lost, doubled or altered.")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
