"""Components that ship with the agent, installed from the service as far as the policy allows it."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.agent.conftest import AgentProcess
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab_agent import installing
from trimtab_agent.components.generated import Generator
from trimtab_agent.installed import Installed
from trimtab_agent.installing import Installable, Installer, OrderError
from trimtab_agent.policy import ComponentRule, LiveRules, Policy

Make = Callable[..., Installer]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "components"
    made.mkdir()
    return made


@pytest.fixture
def make(folder: Path, tmp_path: Path) -> Make:
    def installer(policy: Policy) -> Installer:
        return Installer(policy, Installed(folder, Generator(tmp_path / "generated"), may_be_empty=True))

    return installer


def test_without_the_key_nothing_may_be_installed(make: Make, folder: Path) -> None:
    installer = make(Policy())
    assert installer.components() == []
    with pytest.raises(OrderError, match="'install' of the agent's policy") as refused:
        installer.install("sqlite", busy=False)
    assert refused.value.code == "not_installable"
    assert list(folder.iterdir()) == []


def test_a_component_is_installed_updated_and_removed(
    make: Make, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = make(Policy(install=("sqlite",)))
    (before,) = installer.components()
    assert (before.name, before.installed) == ("sqlite", "")
    installer.install("sqlite", busy=False)
    assert installer.components() == [Installable("sqlite", before.version, before.version)]
    place = folder / "sqlite"
    assert place.is_symlink()
    installed = Installed(folder, Generator(tmp_path / "generated"))
    assert list(installed.components) == ["sqlite"]
    # Scripts find the module that components share.
    assert (place.resolve().parent / "bench.py").is_file()
    installer.install("sqlite", busy=True)  # nothing is left to do

    monkeypatch.setattr(installing, "version", lambda folder: "0123456789ab")
    installer.install("sqlite", busy=False)
    assert installer.components() == [Installable("sqlite", "0123456789ab", "0123456789ab")]
    assert [path.name for path in (folder / ".shipped").iterdir()] == ["sqlite-0123456789ab"]
    assert installed.changed()

    with pytest.raises(OrderError, match="a trial of component 'sqlite' runs") as busy:
        installer.remove("sqlite", busy=True)
    assert busy.value.code == "component_in_use"
    installer.remove("sqlite", busy=False)
    installer.remove("sqlite", busy=False)  # nothing is left to do
    assert not os.path.lexists(place)
    assert list((folder / ".shipped").iterdir()) == []


@pytest.mark.parametrize(
    ("policy", "component", "code"),
    [
        (Policy(install=("*",)), "kafka-producer", "not_installable"),  # a person prepares its sources
        (Policy(install=("*",)), "../evil", "not_installable"),
        (Policy(install=("*",), components={"redis": ComponentRule()}), "sqlite", "forbidden_by_policy"),
        (Policy(install=("*",)), "sighup-live", "forbidden_by_policy"),  # no key `live`
    ],
)
def test_what_may_not_be_installed_leaves_nothing(
    make: Make, folder: Path, policy: Policy, component: str, code: str
) -> None:
    with pytest.raises(OrderError) as refused:
        make(policy).install(component, busy=False)
    assert refused.value.code == code
    assert not (folder / component).exists()
    assert not (folder / ".shipped").exists() or list((folder / ".shipped").iterdir()) == []


def test_a_component_of_the_administrator_is_kept(make: Make, folder: Path) -> None:
    own = folder / "sqlite"
    own.mkdir()
    (own / "component.yaml").write_text("name: own\napplications: {main: {command: [run]}}\n")
    installer = make(Policy(install=("*",)))
    with pytest.raises(OrderError) as refused:
        installer.install("sqlite", busy=False)
    assert refused.value.code == "component_exists"
    installer.remove("sqlite", busy=False)
    assert "name: own" in (own / "component.yaml").read_text()


def test_missing_packages_are_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("trimtab_agent.needs.FOLDERS", ())
    with pytest.raises(OrderError, match="apt-get install redis-server") as refused:
        make(Policy(install=("redis",))).install("redis", busy=False)
    assert refused.value.code == "packages_missing"


def test_a_live_component_may_be_installed_where_the_policy_lets_it_run(make: Make, folder: Path) -> None:
    make(Policy(install=("sighup-live",), live=LiveRules())).install("sighup-live", busy=False)
    assert (folder / "sighup-live" / "component.yaml").is_file()


def test_an_administrator_of_the_tenant_installs_and_removes_it(
    tmp_path: Path, embedded_service: EmbeddedService
) -> None:
    """The agent begins without a component."""
    agent = AgentProcess(tmp_path, int(embedded_service.grpc_address.rpartition(":")[2]), embedded_service.token)
    agent.components.mkdir()
    policy = tmp_path / "policy.yaml"
    policy.write_text("install: [sqlite]\n")
    policy.chmod(0o600)
    rest = httpx.Client(
        base_url=f"{embedded_service.http_url}/api/v1",
        headers={"Authorization": f"Bearer {embedded_service.token}"},
        timeout=PATIENCE,
    )
    try:
        agent.start("--policy", str(policy))
        agent.wait_until_ready()
        path = f"/agents/{(agent.state / 'agent-id').read_text().strip()}"

        def order(component: str, action: str) -> httpx.Response:
            return rest.post(f"{path}/components", json={"component": component, "action": action})

        def ended(state: str) -> bool:
            orders = rest.get(path).json()["orders"]
            return [one["state"] for one in orders] == [state]

        refused = order("redis", "install")
        assert (refused.status_code, refused.json()["code"]) == (409, "not_installable")
        assert order("sqlite", "install").status_code == 202
        wait_for(lambda: ended("done"))
        found = rest.get(path).json()
        assert [one["name"] for one in found["components"]] == ["sqlite"]
        assert found["installable"][0]["installed"] == found["installable"][0]["version"]
        assert found["policy"]["install"] == "sqlite"
        assert order("sqlite", "remove").status_code == 202
        wait_for(lambda: rest.get(path).json()["components"] == [])
        wait_for(lambda: ended("done"))
        assert rest.get(path).json()["installable"][0]["installed"] == ""
    finally:
        agent.clear_away()
