"""Two tenants, their people, scripts and agents at the same time, with a real Keycloak and a real browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import trimtab
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.browser import NEEDS_BROWSER, build_console, open_page
from tests.factories.hosted import Hosted, hosted_service
from tests.factories.keycloak import PASSWORD, TENANTS, Keycloak
from tests.factories.patience import PATIENCE

pytestmark = NEEDS_BROWSER

TRIMTAB = [sys.executable, "-c", "from trimtab.cli.main import app; app(prog_name='trimtab')"]


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str, keycloak: Keycloak) -> Iterator[Hosted]:
    build_console()
    folder = tmp_path_factory.mktemp("tenants")
    with hosted_service(folder, redis_url, keycloak.environment, tenants=TENANTS) as hosted:
        keycloak.let_console(hosted.http_url)
        yield hosted


@pytest.fixture
def new_page(browser: Browser, hosted: Hosted) -> Iterator[Callable[[], Page]]:
    """Pages of browsers that know nothing of one another."""
    contexts: list[BrowserContext] = []

    def make() -> Page:
        contexts.append(browser.new_context(base_url=hosted.http_url))
        return open_page(contexts[-1])

    yield make
    for context in contexts:
        context.close()


def fill_in(page: Page, name: str) -> None:
    """Keycloak's own page."""
    page.locator("#username").fill(name)
    page.locator("#password").fill(PASSWORD)
    page.locator("#kc-login").click()


def sign_in(page: Page, name: str, path: str = "/") -> Page:
    page.goto(path)
    page.get_by_role("button", name="Sign in with your account").click()
    fill_in(page, name)
    return page


def see(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible()


class Shell:
    """`trimtab` with a home of its own."""

    def __init__(self, home: Path, hosted: Hosted, **environment: str) -> None:
        plain = {key: value for key, value in os.environ.items() if not key.startswith("TRIMTAB_")}
        self.environment = {**plain, "XDG_CONFIG_HOME": str(home), "COLUMNS": "200", **environment}
        self._address = hosted.grpc_address

    def log_in(self, browse: Callable[[str, str], None]) -> None:
        """The device flow; `browse` gets the address and the code that are printed."""
        login = subprocess.Popen(
            [*TRIMTAB, "login", self._address], env=self.environment, stderr=subprocess.PIPE, text=True
        )
        assert login.stderr is not None
        reported = ""
        while (found := re.search(r"(http\S+)\s.*shows the code (\S+)\.", reported, re.DOTALL)) is None:
            line = login.stderr.readline()
            assert line, reported
            reported += line
        browse(found[1], found[2])
        rest = login.stderr.read()
        login.stderr.close()
        assert login.wait(PATIENCE) == 0, rest
        assert "Logged in to" in rest

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TRIMTAB, *arguments], env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def say(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def agrees(page: Page, name: str) -> Callable[[str, str], None]:
    """A person who opens the address, compares the code and agrees."""

    def browse(address: str, code: str) -> None:
        assert code in address
        page.goto(address)
        fill_in(page, name)
        page.get_by_role("button", name="Yes").click()
        see(page, "Device Login Successful")

    return browse


def test_the_console_by_keycloak(new_page: Callable[[], Page], hosted: Hosted, keycloak: Keycloak) -> None:
    page = sign_in(new_page(), "alice", "/agents")
    # Back where one wanted to go, and known by name and tenant.
    expect(page).to_have_url(f"{hosted.http_url}/agents")
    see(page, "alice · acme")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    see(page, "alice · acme")

    # The page reaches the realm and this service, and nobody else.
    reach = "url => fetch(url, {mode: 'no-cors'}).then(() => true, () => false)"
    assert page.evaluate(reach, f"{keycloak.issuer}/.well-known/openid-configuration")
    assert page.evaluate(reach, f"{hosted.http_url}/healthz")
    assert not page.evaluate(reach, f"{keycloak.url}/realms/master/.well-known/openid-configuration")

    # A session that has ended is followed by the next one, unnoticed.
    page.context.clear_cookies(name="trimtab_session")
    page.get_by_role("link", name="Studies").click()
    see(page, "No studies yet")
    expect(page).to_have_url(f"{hosted.http_url}/studies")

    # Signed out here and there: Keycloak asks for the password again.
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{hosted.http_url}/sign-in")
    page.get_by_role("button", name="Sign in with your account").click()
    expect(page.locator("#password")).to_be_visible()
    page.goto("/studies")
    see(page, "Sign in to Trimtab")


def test_members_of_several_tenants_choose_and_strangers_stay_out(new_page: Callable[[], Page]) -> None:
    page = sign_in(new_page(), "both", "/agents")
    see(page, "member of several tenants")
    page.get_by_role("button", name="globex").click()
    see(page, "both · globex")
    page.reload()
    see(page, "both · globex")

    page = sign_in(new_page(), "nobody")
    see(page, "nobody is not a member of any tenant.")
    page.goto("/studies")
    see(page, "Sign in to Trimtab")


def test_the_administrators_token_still_opens_the_console(new_page: Callable[[], Page], hosted: Hosted) -> None:
    page = new_page()
    page.goto("/")
    page.get_by_text("Use the administrator token").click()
    page.get_by_label("Administrator token").fill(hosted.environment["TRIMTAB_ADMIN_TOKEN"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    see(page, "administrator · default")


def test_a_login_on_the_command_line_is_renewed_and_ended(
    new_page: Callable[[], Page], hosted: Hosted, keycloak: Keycloak, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, hosted)
    shell.log_in(agrees(new_page(), "mel"))
    assert json.loads(shell.say("whoami", "--json"))["tenant"] == "acme"
    path = tmp_path / "trimtab" / "credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    # Its access token has ended: Keycloak gives the next one.
    kept = json.loads(path.read_text())
    [entry] = kept["logins"].values()
    first = dict(entry["session"])
    entry["session"]["expires_at"] = 0
    path.write_text(json.dumps(kept))
    assert "mel at" in shell.say("whoami")
    [entry] = json.loads(path.read_text())["logins"].values()
    assert entry["session"]["access_token"] != first["access_token"]
    # Logged out: neither this nor what somebody copied gives another.
    shell.say("logout")
    assert "missing_token" in shell.run("whoami").stderr
    with pytest.raises(httpx.HTTPStatusError):
        keycloak.grant(grant_type="refresh_token", client_id="trimtab-cli", refresh_token=first["refresh_token"])


@pytest.mark.slow("tests/unit/tenancy/test_isolation.py separates tenants")
def test_two_tenants_at_work_at_the_same_time(
    new_page: Callable[[], Page], hosted: Hosted, keycloak: Keycloak, tmp_path: Path
) -> None:
    # A person by the device flow, a script by an API token, and an agent by enrolment, in each tenant.
    person = Shell(tmp_path / "mel", hosted)
    person.log_in(agrees(new_page(), "mel"))
    admins, agents, scripts = {}, {}, {}
    for tenant, name in (("acme", "alice"), ("globex", "gus")):
        shell = admins[tenant] = Shell(tmp_path / tenant, hosted)
        shell.log_in(agrees(new_page(), name))
        scripts[tenant] = shell.say("token", "create", "nightly", "--scope", "tune")
        folder = tmp_path / f"agent-{tenant}"
        components = write_component(folder / "components", folder / "runs")
        token = shell.say("agent", "enrol", "--token-only")
        agents[tenant] = RealAgent(folder, hosted.grpc_address, token, components, name=f"{tenant}-agent")

    space, goal = [trimtab.Float("x", -10, 10)], [trimtab.Minimize("y")]

    def by_person() -> Any:
        program = (
            "import trimtab\n"
            "study = trimtab.Client().create_study('by-hand', space=[trimtab.Float('x', 0, 1)],"
            " objectives=[trimtab.Minimize('y')], algorithm='random')\n"
            "study.optimize(lambda params: params['x'], n_trials=10, progress=False)\n"
            "print(study.best_trial.metrics['y'])"
        )
        argv = [sys.executable, "-c", program]
        done = subprocess.run(
            argv, env=person.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    def by_script(tenant: str) -> int:
        with trimtab.Client(hosted.grpc_address, scripts[tenant]) as client:
            study = client.create_study("by-script", space=space, objectives=goal, algorithm="random")
            study.optimize(lambda params: float(params["x"]) ** 2, n_trials=10, progress=False)
            return len(study.trials())

    def by_agent(tenant: str) -> list[trimtab.Trial]:
        with trimtab.Client(hosted.grpc_address, scripts[tenant]) as client:
            study = client.create_study(
                f"on-{tenant}",
                objectives=[trimtab.Minimize("value")],
                algorithm="random",
                component=COMPONENT,
                final_check=False,
                application=APPLICATION,
                max_trials=8,
            )
            assert study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
            return study.trials()

    with agents["acme"], agents["globex"], ThreadPoolExecutor(5) as pool:
        hand = pool.submit(by_person)
        counts = [pool.submit(by_script, tenant) for tenant in TENANTS]
        trials = [pool.submit(by_agent, tenant) for tenant in TENANTS]
        assert 0 <= hand.result() <= 1
        assert [count.result() for count in counts] == [10, 10]
        for done in trials:
            assert len(done.result()) == 8
            for trial in done.result():
                assert trial.metrics == {"value": pytest.approx(value(trial.params))}
        for tenant, shell in admins.items():
            [agent] = json.loads(shell.say("agent", "list", "--json"))
            assert (agent["name"], agent["online"]) == (f"{tenant}-agent", True)
    for tenant in TENANTS:
        runs = (tmp_path / f"agent-{tenant}" / "runs").read_text().splitlines()
        assert len(runs) == 8

    # Each sees its own, by every way.
    expected = {"acme": {"by-hand", "by-script", "on-acme"}, "globex": {"by-script", "on-globex"}}
    for tenant, names in expected.items():
        assert {study["name"] for study in json.loads(admins[tenant].say("study", "list", "--json"))} == names
    assert "[study_not_found]" in admins["globex"].run("study", "show", "on-acme").stderr
    # A viewer looks on and changes nothing.
    page = sign_in(new_page(), "vera", "/studies")
    for name in expected["acme"]:
        expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_role("link", name="on-globex")).to_have_count(0)
    token = keycloak.token("vera")
    for method, path in (("DELETE", "/studies/by-hand"), ("POST", "/enrolments"), ("GET", "/tokens?everyone=true")):
        answer = httpx.request(
            method,
            f"{hosted.http_url}/api/v1{path}",
            headers={"Authorization": f"Bearer {token}"},
            json={},
            timeout=PATIENCE,
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted")
