"""Faults in live trials on a real PostgreSQL: `python -m tests.chaos.live --times 20`.

A live study switches settings of a PostgreSQL server that serves, by the component `postgresql-live`, with short
blocks. A service manager is played: it starts the agent and the server again one second after they have ended. At a
random moment of a trial a fault comes. Then the settings in force are read a hundred times a second until the next
trial begins. The table has the time from the fault to the last moment at which the old settings were not in force, or
at which the agent still had a record of a switch. Where PostgreSQL itself is the victim, the time counts from its next
answer. All the time a second rule is checked: the settings of a trial that has ended are not in force.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import trimtab
from service.embedded.postgres import programs
from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.chaos import faults
from tests.e2e.test_full_disk import fill
from tests.factories.agent import RealAgent
from tests.factories.clock import Clock
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService, lives

COMPONENT, INSTANCE = "postgresql-live", "local-5432"
PARAMETERS = ("work_mem", "random_page_cost", "effective_io_concurrency")
WARM_UP, BLOCK, AWAY, APPLY_SECONDS = 0.5, 2.0, 5.0, 3.0
# A fault comes at most so many seconds after a trial's begin: in the control, in a switch, in blocks of both kinds.
LONGEST_WAIT = 8.0
# Seconds for which the old settings must have been in force before what the fault has broken is repaired.
CALM = 1.0
# Seconds after which a service manager starts what has ended.
RESTART = 1.0
APPLY_LINE = 'apply: {command: [python3, "{component}/switch.py", apply, "{instance}"]}'
CHANGES = (
    ("warm_up: 5s", f"warm_up: {WARM_UP}"),
    ("block: 60s", f"block: {BLOCK}\n  away: {AWAY}\n  calibrate: 0"),
    (
        APPLY_LINE,
        f'apply: {{command: [./apply.sh, "{{component}}/switch.py", "{{instance}}"], timeout: {APPLY_SECONDS}}}',
    ),
    # A busy machine pauses for longer than the guards of the component allow.
    ("above_control: 2, for: 10", "above: 1e9, for: 10"),
    (
        "  guards:\n",
        "    signal: {type: file, file: SIGNAL, every: 0.2}\n  guards:\n    signal: {metric: signal, above: 100}\n",
    ),
)
APPLY = """#!/bin/sh
if [ -e HANG ]; then touch HANG.begun; exec sleep 1000; fi
exec python3 "$1" apply "$2"
"""


@dataclass(frozen=True)
class Look:
    """An observation at a time of the monotonic clock. `settings` is None if the server did not answer."""

    at: float
    settings: tuple[str, ...] | None
    has_record: bool
    supervisor: int


class Site:
    """A PostgreSQL that serves, an agent that switches its settings, a service, and a live study."""

    def __init__(self, folder: Path, cluster: Any, service: EmbeddedService, clock: Clock) -> None:
        self.folder, self.cluster, self.service, self.clock = folder, cluster, service, clock
        self.run, self.state = cluster.folder / "run", folder / "agent" / "state"
        self.hang, self.signal, self.ballast = folder / "hang", folder / "signal", folder / "agent" / "ballast"
        self.looks: list[Look] = []
        self.errors: list[str] = []
        self.old: tuple[str, ...] = ()
        self.study: trimtab.Study
        self._over = threading.Event()
        self._held = threading.Event()
        options = ["--policy", str(self._policy())]
        self.agent = RealAgent(
            folder / "agent",
            service.grpc_address,
            service.data_dir / "admin-token",
            self._component(),
            name="live",
            options=options,
        )

    def _policy(self) -> Path:
        policy = self.folder / "policy.yaml"
        policy.write_text("live: {}")
        policy.chmod(0o600)
        return policy

    def _component(self) -> Path:
        home = self.folder / "components" / COMPONENT
        shutil.copytree(WORKLOADS / COMPONENT, home)
        text = (home / "component.yaml").read_text()
        for before, after in CHANGES:
            assert before in text, before
            text = text.replace(before, after)
        (home / "component.yaml").write_text(text.replace("SIGNAL", str(self.signal)))
        (home / "apply.sh").write_text(APPLY.replace("HANG", str(self.hang)))
        (home / "apply.sh").chmod(0o755)
        self.tell(10.0)
        return home.parent

    def tell(self, value: float) -> None:
        """Set the value of the metric with the narrow guard."""
        new = self.signal.with_suffix(".new")
        new.write_text(f"{value}")
        new.replace(self.signal)

    # -- what goes on all the time

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run traffic, the service manager and both readers."""
        jobs = (self._serve, self._manage, self._look, self._check_ended)
        threads = [threading.Thread(target=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(60)

    def connect(self) -> psycopg.Connection[Any]:
        """Return a session on the server that is tuned."""
        return psycopg.connect(host=str(self.cluster.folder), user="postgres", dbname="postgres", autocommit=True)

    def _serve(self) -> None:
        while not self._over.is_set():
            with suppress(psycopg.Error), self.connect() as session:
                while not self._over.wait(0.01):
                    session.execute("select count(*) from pg_class")
            self._over.wait(0.1)

    def _manage(self) -> None:
        while not self._over.wait(0.05):
            if self._held.is_set():
                continue
            process = self.cluster.process
            if process is None or process.poll() is not None:
                self._over.wait(RESTART)
                self.cluster.start({})
            if not self.agent.running():
                self._over.wait(RESTART)
                with suppress(AssertionError):
                    self.agent.start()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the service manager start nothing."""
        self._held.set()
        try:
            yield
        finally:
            self._held.clear()

    def _look(self) -> None:
        columns = ", ".join(f"current_setting('{name}')" for name in PARAMETERS)
        session: psycopg.Connection[Any] | None = None
        while not self._over.wait(0.01):
            settings = None
            try:
                session = session or self.connect()
                settings = session.execute(f"select {columns}").fetchone()
            except psycopg.Error:
                session = None
            has_record = any((self.state / "live").glob("*.json"))
            self.looks.append(Look(time.monotonic(), settings, has_record, self.supervisor()))

    def _check_ended(self) -> None:
        """Check that the settings of no trial that has ended are in force."""
        while not self._over.wait(0.2):
            with suppress(trimtab.errors.TrimtabError, AttributeError):
                for trial in self.study.trials():
                    if trial.state.finished and self._is_in_force(trial):
                        self.errors.append(f"trial {trial.number} has ended and its settings are in force")

    def _is_in_force(self, trial: trimtab.Trial) -> bool:
        words = {True: "on", False: "off"}
        wanted = {
            f"{name} = '{words[value] if isinstance(value, bool) else value}'" for name, value in trial.params.items()
        }
        with suppress(OSError):
            return set((self.run / f"postgresql-{INSTANCE}.conf").read_text().splitlines()) == wanted
        return False

    # -- what faults and the run ask for

    def supervisor(self) -> int:
        """Return the process of the trial that runs, or 0."""
        for path in (self.state / "leases").glob("*/pid"):
            with suppress(OSError, ValueError, psutil.NoSuchProcess):
                number = int(path.read_text().partition(" ")[0])
                # A stopped agent cannot wait for its children.
                if lives(psutil.Process(number)):
                    return number
        return 0

    def is_old(self, look: Look) -> bool:
        """Return whether the old settings were in force, and nothing was to be put back."""
        return look.settings == self.old and not look.has_record

    def answers(self) -> float:
        """Wait until the server has answered again, and return when."""
        since = time.monotonic()
        wait_for(lambda: self.looks[-1].at > since and self.looks[-1].settings is not None, "the server answers")
        return time.monotonic()

    def begin_study(self, client: trimtab.Client, name: str) -> None:
        """Begin a study in which nothing is kept: no gain is large enough."""
        self.study = client.create_study(
            name,
            component=COMPONENT,
            objectives=[trimtab.Minimize("mean_ms")],
            algorithm="random",
            max_trials=1000,
            live={"approve": "none", "min_gain": 0.9, "pairs": {"least": 6, "most": 24}},
        )


# -- faults: each returns the time from which its effect counts


def kill_agent(site: Site) -> float:
    site.agent.kill()
    return time.monotonic()


def kill_supervisor(site: Site) -> float:
    faults.kill([site.supervisor()])
    return time.monotonic()


def kill_both(site: Site) -> float:
    supervisor = site.supervisor()
    os.kill(site.agent.pid, signal.SIGSTOP)
    faults.kill([supervisor])
    site.agent.kill()
    return time.monotonic()


def kill_service(site: Site) -> float:
    site.service.kill()
    return time.monotonic()


def start_service(site: Site) -> None:
    site.service.start()


def kill_postgresql(site: Site) -> float:
    site.cluster.process.kill()
    site.cluster.process.wait()
    return site.answers()


def stop_agent(site: Site) -> float:
    os.kill(site.agent.pid, signal.SIGSTOP)
    return time.monotonic()


def go_on_agent(site: Site) -> None:
    os.kill(site.agent.pid, signal.SIGCONT)


def stop_supervisor(site: Site) -> float:
    os.kill(site.supervisor(), signal.SIGSTOP)
    return time.monotonic()


def stop_service(site: Site) -> float:
    for process in site.service.tree():
        process.suspend()
    return time.monotonic()


def go_on_service(site: Site) -> None:
    for process in site.service.tree():
        process.resume()


def stop_postgresql(site: Site) -> float:
    server = psutil.Process(site.cluster.process.pid)
    faults.stop([one.pid for one in (server, *server.children(recursive=True))], 12.0)  # longer than guards wait
    return site.answers()


def break_guard(site: Site) -> float:
    site.tell(200.0)
    return time.monotonic()


def calm_guard(site: Site) -> None:
    site.tell(10.0)


def hang_apply(site: Site) -> float:
    site.hang.touch()
    wait_for(Path(f"{site.hang}.begun").exists, "an apply hangs")
    return time.monotonic()


def let_apply(site: Site) -> None:
    site.hang.unlink()
    Path(f"{site.hang}.begun").unlink()


def fill_disk(site: Site) -> float:
    """Without the second fault a trial goes on as long as what it writes fits into the last page of a file."""
    fill(site.ballast)
    return kill_supervisor(site)


def empty_disk(site: Site) -> None:
    site.ballast.unlink()


def set_clock_back(site: Site) -> float:
    site.clock.set(-3600)
    return kill_supervisor(site)


def set_clock_right(site: Site) -> None:
    site.clock.set(0)


def reboot(site: Site) -> float:
    """All processes die at once, and /run is empty."""
    with site.held():
        kill_both(site)
        site.cluster.kill()
        for path in site.run.iterdir():
            path.unlink()
    return site.answers()


@dataclass(frozen=True)
class Kind:
    """A fault, the seconds after which the old settings must be in force, and what repairs the fault afterwards."""

    act: Callable[[Site], float]
    bound: float
    repair: Callable[[Site], None] = lambda _: None


KINDS: Mapping[str, Kind] = {
    "kill agent": Kind(kill_agent, 2.0),
    "kill supervisor": Kind(kill_supervisor, 2.0),
    "kill agent and supervisor": Kind(kill_both, 4.0),
    "kill service": Kind(kill_service, AWAY + 2.0, start_service),
    "kill PostgreSQL": Kind(kill_postgresql, 2.0),
    "stop agent": Kind(stop_agent, 2.0, go_on_agent),
    "stop supervisor": Kind(stop_supervisor, 2.0),
    "stop service": Kind(stop_service, AWAY + 2.0, go_on_service),
    "stop PostgreSQL for 12 s": Kind(stop_postgresql, 2.0),
    "guard at twice its limit": Kind(break_guard, 3.0, calm_guard),
    "apply hangs": Kind(hang_apply, APPLY_SECONDS + 2.0, let_apply),
    "agent's disk full, kill supervisor": Kind(fill_disk, 2.0, empty_disk),
    "clock an hour back, kill supervisor": Kind(set_clock_back, 2.0, set_clock_right),
    "reboot": Kind(reboot, 2.0),
}


class Run:
    """All faults of some kinds."""

    def __init__(self, site: Site, client: trimtab.Client, seed: int) -> None:
        self._site, self._client, self._random = site, client, random.Random(seed)
        self.seconds: dict[str, list[float]] = {}
        self.in_force: dict[str, int] = {}
        self.trials = 0

    def run(self, names: Sequence[str], times: int, shown: Progress) -> None:
        """Make each fault so many times."""
        task = shown.add_task("faults", total=times * len(names))
        for name in names:
            self._site.begin_study(self._client, name.replace(" ", "-").replace("'", "").replace(",", ""))
            self.seconds[name], self.in_force[name] = [], 0
            for _ in range(times):
                self._one(name, KINDS[name])
                shown.advance(task)
                shown.console.print(f"{name}: {self.seconds[name][-1]:.2f} s")
            self.trials += len(self._site.study.trials())
            self._site.study.stop()
            wait_for(lambda: self._site.is_old(self._site.looks[-1]), "the last trial has ended")

    def _one(self, name: str, kind: Kind) -> None:
        site = self._site
        site.looks[:-1] = []
        wait_for(site.supervisor, "a trial runs")
        time.sleep(self._random.uniform(0, LONGEST_WAIT))
        supervisor = wait_for(site.supervisor, "a trial runs")
        self.in_force[name] += not site.is_old(site.looks[-1])
        began = kind.act(site)

        def is_calm() -> bool:
            recent = [look for look in site.looks if look.at > site.looks[-1].at - CALM]
            return site.looks[-1].at > began + CALM and all(
                site.is_old(look) and look.supervisor != supervisor for look in recent
            )

        wait_for(is_calm, f"{name}: the trial has ended, and the old settings are in force")
        kind.repair(site)
        self._clear()

        def goes_on() -> bool:
            # A study pauses itself after several trials that could not work.
            if site.study.refresh().state == "PAUSED":
                site.study.resume()
            return site.supervisor() not in (0, supervisor)

        wait_for(goes_on, f"{name}: the next trial")
        late = [
            look.at - began
            for look in site.looks
            if look.at > began and look.supervisor in (0, supervisor) and not site.is_old(look)
        ]
        self.seconds[name].append(max(late, default=0.0))

    def _clear(self) -> None:
        """Do what a person does after a trial whose old settings could not be put back at once."""
        place = ["--state-dir", str(self._site.state)]
        program = [str(Path(sys.executable).parent / "trimtab-agent"), "live"]
        told = subprocess.run([*program, "status", *place], capture_output=True, text=True, check=False)
        if "STUCK" in told.stdout or "stopped" in told.stdout:
            subprocess.run([*program, "clear", *place], capture_output=True, check=True)

    def failures(self) -> list[str]:
        """Return what did not hold."""
        late = [
            f"{name}: {seconds:.2f} s, at most {KINDS[name].bound:g}"
            for name, found in self.seconds.items()
            for seconds in found
            if seconds > KINDS[name].bound
        ]
        return [*late, *dict.fromkeys(self._site.errors)]

    def table(self) -> Table:
        """Return the times by kind of fault."""
        table = Table(title="Seconds until the old settings were in force for good", title_justify="left")
        for heading in ("fault", "times", "in a switch or after it", "median", "longest", "allowed"):
            table.add_column(heading, justify="left" if heading == "fault" else "right")
        for name, found in self.seconds.items():
            if found:
                shown = (f"{statistics.median(found):.2f}", f"{max(found):.2f}", f"{KINDS[name].bound:g}")
                table.add_row(name, str(len(found)), str(self.in_force[name]), *shown)
        return table


@contextmanager
def site_in(folder: Path, clock: Clock) -> Iterator[Site]:
    """Start everything. The agent's folder is a small disk of its own."""
    disk = folder / "agent"
    disk.mkdir()
    with ExitStack() as around:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", str(disk)], check=True)
        around.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
        os.environ.update({"PGBIN": str(programs()), "PATH": f"{programs()}:{os.environ['PATH']}"})
        module: Any = module_of(WORKLOADS / "postgresql", "cluster")
        module.BASE += f"port = 5432\ninclude_if_exists '{{folder}}/run/postgresql-{INSTANCE}.conf'\n"
        cluster = around.enter_context(module.temporary())
        (cluster.folder / "run").mkdir()
        os.environ.update({"POSTGRESQL_LIVE_RUN": str(cluster.folder / "run"), "PGHOST": str(cluster.folder)})
        cluster.create()
        cluster.start({})
        service = around.enter_context(EmbeddedService(folder / "service"))
        os.environ.update(clock.variables)
        site = Site(folder, cluster, service, clock)
        for name in clock.variables:
            del os.environ[name]
        around.enter_context(site.agent)
        around.enter_context(site.at_work())
        wait_for(lambda: site.looks and site.looks[-1].settings is not None, "the server answers")
        site.old = site.looks[-1].settings or ()
        yield site


def main() -> None:
    """Make the faults and print the table. Exit with 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, metavar="N", help="of each fault (default: %(default)s)")
    parser.add_argument("--faults", default=";".join(KINDS), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: %(default)s)")
    given = parser.parse_args()
    names = [name.strip() for name in given.faults.split(";")]
    if unknown := set(names) - set(KINDS):
        parser.error(f"--faults: {', '.join(sorted(unknown))} is not one of {'; '.join(KINDS)}")
    console, clock = Console(), Clock()
    with tempfile.TemporaryDirectory(prefix="trimtab-live-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        with (
            site_in(folder, clock) as site,
            Progress(console=console) as shown,
            trimtab.Client(site.service.grpc_address, token=site.service.token, retry_seconds=600) as client,
        ):
            run = Run(site, client, given.seed)
            try:
                run.run(names, given.times, shown)
            finally:
                console.print(run.table(), f"{run.trials} trials", *run.failures(), sep="\n")
    clock.close()
    if run.failures():
        raise SystemExit(1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
