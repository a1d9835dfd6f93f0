"""The installation that deploy/compose.yaml describes: the file itself, and the same processes without containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, expect

import trimtab
from service.embedded.processes import Child, stop
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.browser import CHROMIUM, build_console, open_page
from tests.factories.compose import DEPLOY, VARIABLES, Compose
from tests.factories.hosted import hosted_service
from tests.factories.keycloak import CLIENT, JAVA, PASSWORD, TENANTS, realm
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program

# Of other projects' images an exact version, to the last number.
PINNED = re.compile(r"[\w./-]+:\d+\.\d+(\.\d+)?(-[a-z]+)*")
OWN = re.compile(r"trimtab(-\w+)?")


@pytest.fixture(scope="module")
def resolved(programs_start: None) -> dict[str, Any]:
    """The file as Compose's own program reads it, which refuses what is none."""
    program = require_program("docker-compose", "docker-compose")
    argv = [program, "--file", str(DEPLOY / "compose.yaml"), "config"]
    done = subprocess.run(argv, env={**os.environ, **VARIABLES}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = yaml.safe_load(done.stdout)
    return content


def dockerfile(service: dict[str, Any]) -> str:
    return (DEPLOY.parent / service["build"]["dockerfile"]).read_text() if "build" in service else ""


def test_nothing_runs_with_more_rights_than_it_needs(resolved: dict[str, Any]) -> None:
    images = {item["image"]: dockerfile(item) for item in resolved["services"].values() if "build" in item}
    for name, service in resolved["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name
        user = service.get("user") or re.findall(r"^USER (\S+)", images[service["image"]], re.MULTILINE)[-1]
        assert user not in ("", "root", "0"), name
        # Only the proxy publishes ports.
        assert ("ports" in service) == (name == "proxy"), name
    assert resolved["services"].keys() == {
        "proxy", "migrate", "web", "grpc", "worker", "beat", "postgres", "redis", "keycloak",
    }  # fmt: skip


def test_images_are_pinned_and_listening_services_have_a_health_check(resolved: dict[str, Any]) -> None:
    for name, service in resolved["services"].items():
        assert OWN.fullmatch(service["image"]) or PINNED.fullmatch(service["image"]), name
        assert ("healthcheck" in service) == (name not in ("migrate", "worker", "beat")), name


def test_a_variable_that_is_not_set_is_named(programs_start: None) -> None:
    program = require_program("docker-compose", "docker-compose")
    named = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    assert named == {*VARIABLES, "COMPOSE_PROJECT_NAME"}
    for name in VARIABLES:
        set_ = {**os.environ, **{key: item for key, item in VARIABLES.items() if key != name}}
        argv = [program, "--file", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
        done = subprocess.run(argv, env=set_, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert name in done.stderr


@dataclass(frozen=True)
class Installation:
    """Where it answers, and the file of the authority that signed its certificate."""

    origin: str
    address: str
    ca: str

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        trusted = ssl.create_default_context(cafile=self.ca)
        with httpx.Client(base_url=self.origin, verify=trusted, timeout=PATIENCE) as client:
            return client.request(method, path, **options)

    def token(self, user: str) -> str:
        fields = {"grant_type": "password", "client_id": CLIENT, "username": user, "password": PASSWORD}
        answer = self.request("POST", "/sso/realms/trimtab/protocol/openid-connect/token", data=fields)
        return str(answer.raise_for_status().json()["access_token"])


@contextmanager
def redis(folder: Path, compose: Compose, port: int) -> Iterator[None]:
    _, *words = compose.command("redis")
    argv = [require_program("redis-server", "redis-server"), *words, "--port", str(port), "--bind", "127.0.0.1"]
    with _running("redis", [*argv, "--dir", str(folder)], {}, folder):
        yield


@contextmanager
def keycloak(folder: Path, compose: Compose, port: int) -> Iterator[None]:
    """Built and started as its Dockerfile says."""
    require_program("java", "openjdk-17-jre-headless")
    require_program("mvn", "maven")
    fetched = subprocess.run([DEPLOY / "keycloak/fetch.sh"], stdout=subprocess.PIPE, text=True, check=True)
    home = folder / "keycloak"
    shutil.copytree(fetched.stdout.strip(), home)
    (home / "data" / "import").mkdir(parents=True, exist_ok=True)
    (home / "data" / "import" / "realm.json").write_text(json.dumps(realm()))
    text = (DEPLOY / "images/keycloak.Dockerfile").read_text()
    [build] = re.findall(r"^RUN /opt/keycloak/bin/kc.sh (.*)$", text, re.MULTILINE)
    [start] = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    program = str(home / "bin" / "kc.sh")
    environment = {
        **compose.environment("keycloak"),
        "KC_HTTP_PORT": str(port),
        "KC_HTTP_HOST": "127.0.0.1",
        "KC_HTTP_MANAGEMENT_PORT": str(free_port()),
        "JAVA_OPTS": JAVA,
    }
    built = subprocess.run(
        [program, *build.split()], env={**os.environ, "JAVA_OPTS": JAVA}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout[-3000:]
    url = f"http://127.0.0.1:{port}/sso/realms/trimtab"
    with _running("keycloak", [program, *json.loads(start)], environment, folder) as child:
        wait_for(lambda: _answers(url) or not child.running(), "Keycloak serves")
        assert child.running(), (folder / "keycloak.log").read_text()[-3000:]
        yield


@contextmanager
def proxy(folder: Path, places: dict[str, str], host: str) -> Iterator[None]:
    """With the Caddyfile that its image has, and this machine's addresses in it."""
    text = (DEPLOY / "proxy" / "Caddyfile").read_text()
    for place, here in places.items():
        text = text.replace(place, here)
    path = folder / "Caddyfile"
    path.write_text(text)
    environment = {
        "TRIMTAB_HOST": host,
        "TRIMTAB_ADMIN_NETWORK": VARIABLES["TRIMTAB_ADMIN_NETWORK"],
        "TRIMTAB_HTTP_PORT": str(free_port()),
        "TRIMTAB_HTTPS_PORT": host.partition(":")[2],
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    program = require_program("caddy", "caddy")
    argv = [program, "run", "--config", str(path), "--adapter", "caddyfile"]
    with _running("proxy", argv, environment, folder) as child:
        authority = folder / "caddy/pki/authorities/local/root.crt"
        wait_for(lambda: authority.exists() or not child.running(), "the proxy has signed its certificate")
        assert child.running(), (folder / "proxy.log").read_text()[-3000:]
        yield


@contextmanager
def _running(name: str, argv: list[str], environment: dict[str, str], folder: Path) -> Iterator[Child]:
    # Keycloak's script passes SIGTERM on to Java, which a SIGKILL of the script alone would leave running.
    child = Child(
        name,
        argv,
        {**os.environ, **environment},
        folder / f"{name}.log",
        stop_signals=((signal.SIGTERM, 20.0),),
        death_signal=signal.SIGTERM,
    )
    child.start()
    try:
        yield child
    finally:
        stop([child])


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=10).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[Installation]:
    build_console()
    folder = tmp_path_factory.mktemp("compose")
    ports = {name: free_port() for name in ("proxy", "redis", "keycloak", "web", "grpc")}
    host = f"localhost:{ports['proxy']}"
    places = {
        "redis:6379": f"127.0.0.1:{ports['redis']}",
        "keycloak:8080": f"127.0.0.1:{ports['keycloak']}",
        # by the name that is allowed inside the container, too
        "web:8470": f"localhost:{ports['web']}",
        "grpc:8471": f"127.0.0.1:{ports['grpc']}",
    }
    variables = {"TRIMTAB_HOST": host}
    with ExitStack() as running:
        running.enter_context(redis(folder, Compose(places, variables), ports["redis"]))
        hosted = running.enter_context(
            hosted_service(folder, places["redis:6379"], workers=1, tenants=TENANTS, variables=variables, places=places)
        )
        # the database's port is known by now
        places["postgres:5432"] = re.search(r"@([\d.:]+)/", hosted.environment["DATABASE_URL"])[1]  # type: ignore[index]
        running.enter_context(keycloak(folder, Compose(places, variables), ports["keycloak"]))
        running.enter_context(proxy(folder, places, host))
        ca = str(folder / "caddy/pki/authorities/local/root.crt")
        installation = Installation(f"https://{host}", host, ca)
        wait_for(lambda: _ready(installation), "the installation answers")
        yield installation


def _ready(installation: Installation) -> bool:
    try:
        return installation.request("GET", "/readyz").is_success
    except (httpx.TransportError, OSError):  # the latter where the authority's file is not all there
        return False


@pytest.mark.slow("starts Keycloak, a proxy and a hosted service, which have tests of their own")
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_console_through_the_proxy(browser: Browser, installation: Installation) -> None:
    context = browser.new_context(base_url=installation.origin, ignore_https_errors=True)
    page = open_page(context)
    page.goto("/agents")
    page.get_by_role("button", name="Sign in with your account").click()
    page.locator("#username").fill("alice")
    page.locator("#password").fill(PASSWORD)
    page.locator("#kc-login").click()
    expect(page).to_have_url(f"{installation.origin}/agents")
    expect(page.get_by_text("alice · acme").first).to_be_visible()
    [cookie] = [item for item in context.cookies() if item["name"] == "trimtab_session"]
    assert cookie["secure"]
    assert cookie["httpOnly"]
    context.close()
    headers = installation.request("GET", "/").headers
    assert headers["Strict-Transport-Security"]
    assert f"connect-src 'self' {installation.origin}/sso/realms/trimtab/;" in headers["Content-Security-Policy"]
    assert installation.request("GET", "/metrics").status_code == 404
    # The tests come from an address outside of TRIMTAB_ADMIN_NETWORK.
    for path in ("/sso/admin;x=1/", "/sso/admin%3bx=1/", "/sso/realms/..;/master", "/sso/admin%00", "/metrics;x"):
        assert installation.request("GET", path).status_code == 400, path
    for path in ("/sso/admin", "/sso/admin/master/console/", "/sso/realms/master", "/sso/realms/master/account"):
        assert installation.request("GET", path).status_code == 404, path


@pytest.mark.slow("starts Keycloak, a proxy and a hosted service, which have tests of their own")
def test_scripts_and_agents_through_the_proxy(installation: Installation, tmp_path: Path) -> None:
    """An API token and the SDK, an enrolment and an agent: all by the one encrypted port."""
    admin = {"Authorization": f"Bearer {installation.token('alice')}"}
    body = {"name": "nightly", "scopes": ["tune", "read"]}
    made = installation.request("POST", "/api/v1/tokens", headers=admin, json=body).raise_for_status().json()
    enrolment = installation.request("POST", "/api/v1/enrolments", headers=admin, json={}).raise_for_status().json()
    components = write_component(tmp_path / "components", tmp_path / "runs")
    agent = RealAgent(
        tmp_path, installation.address, enrolment["secret"], components, options=["--tls-ca", installation.ca]
    )
    with agent, trimtab.Client(installation.address, made["secret"], ca=installation.ca) as client:
        assert client.who_am_i().tenant == "acme"
        study = client.create_study(
            "by-script", space=[trimtab.Float("x", -1, 1)], objectives=[trimtab.Minimize("y")], algorithm="gp", seed=0
        )
        # beyond its first configurations, which need no worker
        for _ in range(5):
            for trial in study.ask(3, timeout=PATIENCE):
                study.tell(trial, float(trial.params["x"]) ** 2)
        assert len(study.trials()) == 15
        on_agents = client.create_study(
            "on-agents",
            objectives=[trimtab.Minimize("value")],
            algorithm="random",
            component=COMPONENT,
            final_check=False,
            application=APPLICATION,
            max_trials=4,
        )
        assert on_agents.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
        for trial in on_agents.trials():
            assert trial.metrics == {"value": pytest.approx(value(trial.params))}
    # Another tenant sees none of it.
    other = {"Authorization": f"Bearer {installation.token('gus')}"}
    assert installation.request("GET", "/api/v1/studies", headers=other).json()["studies"] == []
