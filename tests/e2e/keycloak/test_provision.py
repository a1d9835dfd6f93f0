"""`trimtab-service keycloak` against a real Keycloak: a fresh realm, a damaged one, and mistakes."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from service.main import app
from tests.factories.keycloak import Keycloak
from tests.factories.patience import PATIENCE

CONSOLE = "https://tune.example.org"
Run = Callable[..., tuple[int, str]]
numbers = count(1)


@pytest.fixture
def realm() -> str:
    return f"fresh-{next(numbers)}"


@pytest.fixture
def run(keycloak: Keycloak, realm: str) -> Run:
    """Call a command for the realm of this test; return its exit code and its output."""

    def call(command: str, *options: str, password: str = keycloak.admin_password) -> tuple[int, str]:
        given = ["keycloak", command, "--url", keycloak.url, "--console-url", CONSOLE, "--realm", realm, *options]
        result = CliRunner().invoke(app, given, env={"KEYCLOAK_ADMIN_PASSWORD": password})
        return result.exit_code, result.output

    return call


class Realm:
    """The administration of one realm, in place of the one that the other tests use."""

    def __init__(self, keycloak: Keycloak, name: str) -> None:
        fields = {"grant_type": "password", "client_id": "admin-cli", "username": "admin"}
        address = f"{keycloak.url}/realms/master/protocol/openid-connect/token"
        answer = httpx.post(address, data={**fields, "password": keycloak.admin_password}, timeout=PATIENCE)
        self._headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        self._base = f"{keycloak.url}/admin/realms/{name}"

    def __call__(self, method: str, path: str = "", body: object = None) -> Any:
        answer = httpx.request(method, self._base + path, json=body, headers=self._headers, timeout=PATIENCE)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def client(self, name: str) -> dict[str, Any]:
        [found] = self("GET", f"/clients?clientId={name}")
        return dict(found)


def test_a_fresh_keycloak_gets_all_that_the_service_needs(run: Run, keycloak: Keycloak, realm: str) -> None:
    code, output = run("check")
    assert (code, f"fault realm {realm}: is missing" in output) == (1, True), output
    code, output = run("provision", "--tenant", "acme", "--tenant", "globex")
    assert code == 0, output
    assert f"repaired realm {realm}: is missing" in output
    assert "repaired group /tenants/globex/viewer: is missing" in output
    assert f"TRIMTAB_OIDC_ISSUER={keycloak.url}/realms/{realm}" in output

    code, output = run("check", "--tenant", "acme", "--tenant", "globex")
    assert (code, output) == (0, "The realm has all that Trimtab needs.\n")
    code, output = run("provision", "--tenant", "acme", "--tenant", "globex")
    assert (code, "No changes" in output, "repaired" in output) == (0, True, False), output

    console = Realm(keycloak, realm).client("trimtab-console")
    assert console["rootUrl"] == CONSOLE
    # The agents' account signs in with the generated secret, and its token carries its tenant.
    agents = Realm(keycloak, realm).client("trimtab-agents")
    other = replace(keycloak)
    form = {"grant_type": "client_credentials", "client_id": "trimtab-agents", "client_secret": agents["secret"]}
    answer = httpx.post(f"{other.url}/realms/{realm}/protocol/openid-connect/token", data=form, timeout=PATIENCE)
    assert answer.is_success, answer.text


@pytest.mark.slow("a fresh realm shows the same steps")
def test_a_damaged_realm_is_repaired_and_choices_are_kept(run: Run, keycloak: Keycloak, realm: str) -> None:
    assert run("provision", "--tenant", "acme")[0] == 0
    change = Realm(keycloak, realm)
    console, cli = change.client("trimtab-console"), change.client("trimtab-cli")
    change(
        "PUT", f"/clients/{console['id']}", {**console, "redirectUris": ["/other"], "directAccessGrantsEnabled": True}
    )
    [audience] = [one for one in cli["protocolMappers"] if one["name"] == "audience"]
    change("DELETE", f"/clients/{cli['id']}/protocol-mappers/models/{audience['id']}")
    [groups] = [one for one in cli["protocolMappers"] if one["name"] == "groups"]
    short = {**groups, "config": {**groups["config"], "full.path": "false"}}
    change("PUT", f"/clients/{cli['id']}/protocol-mappers/models/{groups['id']}", short)
    change("DELETE", f"/clients/{change.client('trimtab-agents')['id']}")
    change("DELETE", "/roles/operator")
    member = change("GET", "/group-by-path/tenants/acme/member")
    change("DELETE", f"/groups/{member['id']}")
    change("PUT", "", {**change("GET"), "accessTokenLifespan": 120})

    code, output = run("check", "--tenant", "acme", "--tenant", "default")
    assert code == 1, output
    for line in (
        "note  realm: accessTokenLifespan is 120; Trimtab ships 300",
        "fault realm role operator: is missing",
        "fault group /tenants/acme/member: is missing",
        "fault client trimtab-console: directAccessGrantsEnabled is True instead of False",
        "fault client trimtab-console: redirectUris has no /sign-in",
        "fault client trimtab-cli: the mapper audience is missing",
        "fault client trimtab-cli: the mapper groups differs in full.path",
        "fault client trimtab-agents: is missing",
    ):
        assert line in output.splitlines(), output

    code, output = run("provision", "--tenant", "acme", "--tenant", "default")
    assert code == 0, output
    assert "kept     realm: accessTokenLifespan is 120" in output
    assert "repaired client trimtab-console: tokens do not carry the realm role operator" in output
    assert "repaired service account of trimtab-agents: is not in /tenants/default/agent" in output
    code, output = run("check", "--tenant", "acme", "--tenant", "default")
    assert code == 0, output
    assert change.client("trimtab-console")["redirectUris"] == ["/other", "/sign-in"]
    assert change("GET")["accessTokenLifespan"] == 120


@pytest.mark.parametrize(
    ("options", "password", "message"),
    [
        ((), "wrong", "does not accept the password of the administrator 'admin'"),
        ((), "", "KEYCLOAK_ADMIN_PASSWORD"),
        (("--tenant", "ACME/x"), None, "'ACME/x' is not the short name of a tenant"),
        (("--url", "http://127.0.0.1:9"), None, "does not answer"),
        (("--url", "ftp://127.0.0.1"), None, "is not the address of a Keycloak"),
    ],
)
def test_a_mistake_is_named(
    run: Run, keycloak: Keycloak, options: tuple[str, ...], password: str | None, message: str
) -> None:
    code, output = run("check", *options, password=keycloak.admin_password if password is None else password)
    assert code == 2
    assert message in output


def test_a_wrong_path_is_named(run: Run, keycloak: Keycloak) -> None:
    code, output = run("check", "--url", f"{keycloak.url}/sso")
    assert code == 2
    assert "includes the path of Keycloak" in output
