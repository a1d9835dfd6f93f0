"""An upgrade without downtime: clients and agents of two versions work while the processes are replaced one by one.

A proxy spreads the calls over all gRPC and web processes that run, as a load balancer does. In each phase every client
and agent must get on before the next phase begins. At the end nothing acknowledged is lost and nothing is doubled.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

import trimtab
from service.embedded.processes import Child, stop
from tests.factories import steady_client
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.compose import DEPLOY, PROGRAM, PROXY_ADDRESS, VARIABLES, Compose
from tests.factories.earlier import earlier_version
from tests.factories.hosted import TOKEN, initialise
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import postgres_server, require_program
from trimtab.study import Study

PARTS = ("web", "grpc", "worker", "beat")
# A process starts, an agent runs a trial, and a worker computes a suggestion, within this time on a busy machine.
PROXY = """
{
    admin off
    auto_https off
    servers {
        protocols h1 h2c
    }
}
http://127.0.0.1:GRPC {
    reverse_proxy h2c://OLD_GRPC h2c://NEW_GRPC {
        flush_interval -1
        lb_policy round_robin
        lb_try_duration 20s
        lb_try_interval 100ms
        fail_duration 1s
    }
}
http://127.0.0.1:WEB {
    reverse_proxy OLD_WEB NEW_WEB {
        flush_interval -1
        lb_policy round_robin
        lb_try_duration 20s
        lb_try_interval 100ms
        fail_duration 1s
    }
}
"""


class Version:
    """The processes of one version of the service."""

    def __init__(self, compose: Compose, folder: Path, places: dict[str, str]) -> None:
        self.places = places
        self._compose = compose
        self._folder = folder
        folder.mkdir()
        outside = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
        alone = {"TRIMTAB_OIDC_ISSUER": "", "TRIMTAB_OIDC_JWKS_URL": "", "TRIMTAB_ADMIN_TOKEN": TOKEN}
        self.environment = {**outside, **compose.environment("web"), **alone, "TRIMTAB_ALLOWED_HOSTS": "127.0.0.1"}
        self._children: list[Child] = []

    def migrate(self) -> None:
        """Bring the tables up to this version."""
        as_owner = {**self.environment, **self._compose.environment("migrate"), **_ALONE}
        command = self._compose.process("migrate")
        done = subprocess.run(command, env=as_owner, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start all processes and wait until they answer."""
        self._children = [
            Child(part, self._compose.process(part), self.environment, self._folder / f"{part}.log") for part in PARTS
        ]
        for child in self._children:
            child.start()
        wait_for(self._ready, f"the processes in {self._folder} answer")

    def stop(self) -> None:
        """Stop one process after the other, each as `docker stop` does."""
        for child in self._children:
            stop([child])

    def logs(self) -> str:
        """Return the ends of the logs."""
        return "\n".join(f"--- {path}\n{path.read_text()[-3000:]}" for path in sorted(self._folder.glob("*.log")))

    def _ready(self) -> bool:
        for child in self._children:
            assert child.running(), self.logs()
        try:
            return httpx.get(f"http://{self.places['web:8470']}/readyz", timeout=10).is_success
        except httpx.TransportError:
            return False


_ALONE = {"TRIMTAB_OIDC_ISSUER": "", "TRIMTAB_OIDC_JWKS_URL": ""}


class Reader:
    """A browser's part: it reads a list over REST again and again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.answers = 0
        self.failures: list[str] = []

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(PATIENCE)

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        while not self._over.wait(0.1):
            try:
                answer = httpx.get(f"{self._url}/api/v1/studies", headers=headers, timeout=PATIENCE)
            except httpx.TransportError as error:
                self.failures.append(repr(error))
                continue
            if answer.is_success:
                self.answers += 1
            else:
                self.failures.append(f"{answer.status_code} {answer.text[:500]}")


class Load:
    """The clients and agents of both versions."""

    def __init__(self, folder: Path, address: str, earlier: Path, running: ExitStack) -> None:
        self._stop = folder / "stop"
        self._folder = folder
        self.address = address
        self.clients: dict[str, Child] = {}
        pythons = {"old": earlier / ".venv" / "bin" / "python", "new": Path(sys.executable)}
        for version, python in pythons.items():
            for algorithm in ("random", "gp"):
                name = f"{version}-{algorithm}"
                words = [address, TOKEN, name, algorithm, str(self.ledger(name)), str(self._stop)]
                argv = [str(python), "-P", steady_client.__file__, *words]
                self.clients[name] = Child(name, argv, dict(os.environ), folder / f"{name}.log")
                running.callback(stop, [self.clients[name]])
        token = folder / "token"
        token.write_text(TOKEN)
        self.runs = folder / "runs"
        components = write_component(folder / "components", self.runs)
        self.agents: dict[str, RealAgent] = {}
        for version, python in pythons.items():
            home = folder / f"agent-{version}"
            home.mkdir()
            self.agents[version] = RealAgent(home, address, token, components, name=version, programs=python.parent)

    def ledger(self, name: str) -> Path:
        """Return the file of what a client was told to be stored."""
        return self._folder / f"{name}.ledger"

    def start(self, running: ExitStack) -> None:
        """Start all clients and agents, and the study of the agents."""
        for child in self.clients.values():
            child.start()
        for agent in self.agents.values():
            running.enter_context(agent)
        with trimtab.Client(self.address, TOKEN) as client:
            client.create_study(
                "on-agents",
                objectives=[trimtab.Minimize("value")],
                algorithm="random",
                component=COMPONENT,
                application=APPLICATION,
                final_check=False,
                parallelism=2,
            )

    def finish(self) -> None:
        """Let the clients end after the trial that they are at, and stop the agents' study."""
        self._stop.touch()
        for name, child in self.clients.items():
            assert child.process is not None
            assert child.process.wait(PATIENCE) == 0, self.log(name)

    def log(self, name: str) -> str:
        """Return the log of a client."""
        return (self._folder / f"{name}.log").read_text()

    def acknowledged(self, name: str) -> list[tuple[int, float]]:
        """Return number and value of each result of a client that the service has acknowledged."""
        lines = self.ledger(name).read_text().splitlines() if self.ledger(name).exists() else []
        return [(int(number), float(result)) for number, result in (line.split() for line in lines)]


class Installation:
    """Two versions over one database, behind one proxy, under load."""

    def __init__(self, old: Version, new: Version, load: Load, reader: Reader, database: str) -> None:
        self.old, self.new, self.load, self.reader = old, new, load, reader
        self._database = database

    def settled(self) -> dict[str, int]:
        """Return the number of finished runs of each agent."""
        with psycopg.connect(self._database) as connection:
            query = (
                "SELECT agent.name, count(*) FROM fleet_lease AS lease"
                " JOIN fleet_agent AS agent ON agent.id = lease.agent_id"
                " WHERE lease.state <> 'HELD' GROUP BY agent.name"
            )
            return {str(name): int(count) for name, count in connection.execute(query).fetchall()}

    def progress(self) -> dict[str, int]:
        """Return what each client and agent has done so far, and the number of answers over REST."""
        done = {name: len(self.load.acknowledged(name)) for name in self.load.clients}
        done |= {f"agent-{version}": self.settled().get(version, 0) for version in self.load.agents}
        return done | {"rest": self.reader.answers}

    def expect_progress(self, phase: str) -> None:
        """Wait until all have got on by some trials from now. Fails with the logs if one has ended or does not."""
        before = self.progress()

        def all_got_on() -> bool:
            for name, child in self.load.clients.items():
                assert child.running(), f"{phase}: {name} has ended:\n{self.load.log(name)}\n{self.logs()}"
            now = self.progress()
            return all(now[name] >= count + (2 if name.endswith("gp") else 6) for name, count in before.items())

        try:
            wait_for(all_got_on, f"{phase}: all get on")
        except AssertionError as error:
            raise AssertionError(f"{error}\nbefore {before}\nafter {self.progress()}\n{self.logs()}") from None
        assert not self.reader.failures, (phase, self.reader.failures)

    def logs(self) -> str:
        """Return the ends of the logs of the service."""
        return f"{self.old.logs()}\n{self.new.logs()}"


def in_folder(checkout: Path) -> tuple[str, ...]:
    """Return the command `trimtab-service` of a checkout. Celery imports from the current folder."""
    return ("env", f"--chdir={checkout}", str(checkout / ".venv" / "bin" / "python"), "-m", "service.main")


@contextmanager
def proxy(folder: Path, places: dict[str, str]) -> Iterator[None]:
    """Run Caddy with this configuration."""
    text = PROXY
    for name, here in places.items():
        text = text.replace(name, here)
    (folder / "Caddyfile").write_text(text)
    program = require_program("caddy", "caddy")
    argv = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    home = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    child = Child("proxy", argv, {**os.environ, **home}, folder / "proxy.log")
    child.start()
    try:
        yield
    finally:
        stop([child])


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An earlier version with its environment."""
    with earlier_version(tmp_path_factory.mktemp("history")) as checkout:
        yield checkout


@pytest.fixture
def installation(earlier: Path, tmp_path: Path, redis_url: str) -> Iterator[Installation]:
    """The old version under load, and the new one, which has not been started."""
    port = str(free_port())
    settings = {"listen_addresses": "127.0.0.1", "port": port}
    redis = redis_url.removeprefix("redis://")
    with ExitStack() as running:
        server = running.enter_context(postgres_server(tmp_path, settings))
        versions = {}
        for name, program, deploy in (
            ("old", in_folder(earlier), earlier / "deploy"),
            ("new", PROGRAM, DEPLOY),
        ):
            places = {part: f"127.0.0.1:{free_port()}" for part in ("web:8470", "grpc:8471")}
            places |= {"postgres:5432": f"127.0.0.1:{port}", PROXY_ADDRESS: "127.0.0.1"}
            places |= {f":{VARIABLES['TRIMTAB_REDIS_PASSWORD']}@redis:6379/0": redis, "redis:6379/0": redis}
            versions[name] = Version(Compose(places, None, program, deploy), tmp_path / name, places)
        old, new = versions["old"], versions["new"]
        initialise(server, Compose(old.places, deploy=earlier / "deploy"))
        old.migrate()
        running.callback(new.stop)
        running.callback(old.stop)
        old.start()
        front = {name: f"{free_port()}" for name in ("GRPC", "WEB")}
        behind = {
            f"{name.upper()}_{part.upper()}": version.places[place]
            for name, version in versions.items()
            for part, place in (("grpc", "grpc:8471"), ("web", "web:8470"))
        }
        running.enter_context(proxy(tmp_path, {**behind, **front}))
        load = Load(tmp_path, f"127.0.0.1:{front['GRPC']}", earlier, running)
        load.start(running)
        reader = running.enter_context(Reader(f"http://127.0.0.1:{front['WEB']}"))
        yield Installation(old, new, load, reader, server.url("trimtab"))


@pytest.mark.slow("replaces every process of two installations under load")
@pytest.mark.timeout(3600)
def test_processes_are_replaced_one_by_one_under_load_and_back(installation: Installation) -> None:
    old, new, load = installation.old, installation.new, installation.load
    installation.expect_progress("the old version alone")
    new.migrate()
    installation.expect_progress("the old version with the new tables")
    new.start()
    installation.expect_progress("both versions")
    old.stop()
    installation.expect_progress("the new version alone")
    # The way back, without a change of the tables.
    old.start()
    new.stop()
    installation.expect_progress("the old version again, with the new tables")
    new.start()
    old.stop()
    installation.expect_progress("the new version at last")

    load.finish()
    with trimtab.Client(load.address, TOKEN) as client:
        for name in load.clients:
            acknowledged = load.acknowledged(name)
            trials = client.get_study(name).trials()
            assert [trial.number for trial in trials] == list(range(1, len(trials) + 1)), name
            assert {trial.state for trial in trials} == {"COMPLETED"}, name
            # Each result was stored once, for the trial that was asked for.
            assert sorted(acknowledged) == [(trial.number, trial.metrics["y"]) for trial in trials], name
        study = client.get_study("on-agents")
        study.complete()
        wait_for(lambda: not _held(study), "no trial runs any more")
        trials = [trial for trial in study.trials() if trial.metrics]
        assert {trial.state for trial in trials} == {"COMPLETED"}
        for trial in trials:
            assert trial.metrics == {"value": pytest.approx(value(trial.params))}
        # No trial was run twice.
        assert len(load.runs.read_text().splitlines()) - len(trials) in range(3)
    assert not installation.reader.failures


def _held(study: Study) -> bool:
    time.sleep(0.5)
    return any(trial.state in ("ACTIVE", "REQUESTED") for trial in study.trials())
