"""A real Keycloak with the realm that Trimtab ships, two tenants and people in them."""

import copy
import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from service.embedded.processes import Child, stop
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program

ROOT = Path(__file__).resolve().parents[2]
REALM = "trimtab"
PASSWORD = "correct horse"
# A client of the tests alone, which takes passwords: people sign in by the console's and the command line's.
CLIENT = "tests"
# The same, whose tokens are not meant for Trimtab.
OTHER_CLIENT = "elsewhere"
AGENTS_CLIENT = "trimtab-agents"
# name: groups. `olga` also has the realm's role `operator`; `dora` is disabled.
PEOPLE: Mapping[str, Sequence[str]] = {
    "alice": ["/tenants/acme/admin"],
    "mel": ["/tenants/acme/member"],
    "vera": ["/tenants/acme/viewer"],
    "gus": ["/tenants/globex/admin"],
    "greta": ["/tenants/globex/member"],
    "both": ["/tenants/acme/member", "/tenants/globex/viewer"],
    "nobody": [],
    "olga": [],
    "dora": ["/tenants/acme/admin"],
}
TENANTS = ("acme", "globex")
# Half of what Keycloak takes by default, and half its time to start: one compiler and one collector for a small heap.
JAVA = "-Xms64m -Xmx384m -XX:MaxMetaspaceSize=256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError"


@dataclass
class Keycloak:
    """A running Keycloak at `url`."""

    url: str
    child: Child
    admin_password: str = field(repr=False)

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{REALM}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the service's settings for this Keycloak."""
        return {"TRIMTAB_OIDC_ISSUER": self.issuer}

    def tokens(self, user: str, client: str = CLIENT, **fields: str) -> dict[str, Any]:
        """Keycloak's answer to a person's name and password. Raises httpx.HTTPStatusError where it refuses."""
        return self.grant(grant_type="password", client_id=client, username=user, password=PASSWORD, **fields)

    def token(self, user: str, client: str = CLIENT) -> str:
        """Return an access token of a person."""
        return str(self.tokens(user, client)["access_token"])

    def machine_token(self) -> str:
        """Return an access token of the agents' service account, which belongs to the tenant `default`."""
        [client] = self.admin("GET", "/clients", params={"clientId": AGENTS_CLIENT})
        answer = self.grant(grant_type="client_credentials", client_id=AGENTS_CLIENT, client_secret=client["secret"])
        return str(answer["access_token"])

    def grant(self, **fields: str) -> dict[str, Any]:
        """Keycloak's token endpoint. Raises httpx.HTTPStatusError where it refuses."""
        return dict(_answer(httpx.post(f"{self.issuer}/protocol/openid-connect/token", data=fields, timeout=PATIENCE)))

    def admin(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        """Keycloak's administration of the realm."""
        fields = {"grant_type": "password", "client_id": "admin-cli", "username": "admin"}
        token = _answer(
            httpx.post(
                f"{self.url}/realms/master/protocol/openid-connect/token",
                data={**fields, "password": self.admin_password},
                timeout=PATIENCE,
            )
        )["access_token"]
        return _answer(
            httpx.request(
                method,
                f"{self.url}/admin/realms/{REALM}{path}",
                json=body,
                headers={"Authorization": f"Bearer {token}"},
                timeout=PATIENCE,
                **options,
            )
        )

    def user(self, name: str) -> dict[str, Any]:
        """Return what Keycloak stores about a person."""
        [found] = self.admin("GET", "/users", params={"username": name, "exact": "true"})
        return dict(found)

    def add_user(self, name: str, *groups: str) -> None:
        """Add a person."""
        self.admin("POST", "/users", _user(name, groups))

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Disable or enable a person."""
        self.admin("PUT", f"/users/{self.user(name)['id']}", {**self.user(name), "enabled": enabled})

    def join_group(self, name: str, group: str) -> None:
        """Put a person into a group, given by its path."""
        self._membership("PUT", name, group)

    def leave_group(self, name: str, group: str) -> None:
        """Take a person out of a group, given by its path."""
        self._membership("DELETE", name, group)

    def _membership(self, method: str, name: str, group: str) -> None:
        found = self.admin("GET", f"/group-by-path{group}")
        self.admin(method, f"/users/{self.user(name)['id']}/groups/{found['id']}")

    def rotate_keys(self) -> None:
        """Sign with a new key from now on."""
        component = {
            "name": f"rotated-{secrets.token_hex(4)}",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "config": {"priority": [str(200 + secrets.randbelow(10**6))], "algorithm": ["RS256"]},
        }
        self.admin("POST", "/components", component)

    def let_console(self, url: str) -> None:
        """Let the console at this address sign people in."""
        [client] = self.admin("GET", "/clients", params={"clientId": "trimtab-console"})
        client["redirectUris"] = [*client["redirectUris"], f"{url}/sign-in"]
        client["webOrigins"] = [*client["webOrigins"], url]
        client["attributes"]["post.logout.redirect.uris"] = "+"
        self.admin("PUT", f"/clients/{client['id']}", client)


@contextmanager
def keycloak_server(folder: Path) -> Iterator[Keycloak]:
    """Run a Keycloak with its data in memory. Without Java or Maven the test fails in CI, and is skipped elsewhere."""
    require_program("java", "openjdk-17-jre-headless")
    require_program("mvn", "maven")
    fetched = subprocess.run([ROOT / "deploy/keycloak/fetch.sh"], stdout=subprocess.PIPE, text=True, check=True)
    home = folder / "keycloak"
    shutil.copytree(fetched.stdout.strip(), home, copy_function=_link)
    (home / "data" / "import").mkdir(parents=True)
    (home / "data" / "import" / "realm.json").write_text(json.dumps(realm()))
    port, password = free_port(), secrets.token_urlsafe(16)
    argv = [str(home / "bin" / "kc.sh"), "start", "--optimized", "--import-realm", "--cache=local"]
    argv += [
        "--http-enabled=true",
        "--http-host=127.0.0.1",
        f"--http-port={port}",
        f"--hostname=http://127.0.0.1:{port}",
    ]
    environment = {
        **os.environ,
        "JAVA_OPTS": JAVA,
        "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
        "KC_BOOTSTRAP_ADMIN_PASSWORD": password,
    }
    # The script passes SIGTERM on to Java, which the kernel's SIGKILL of the script alone would leave running.
    child = Child(
        "keycloak",
        argv,
        environment,
        folder / "keycloak.log",
        stop_signals=((signal.SIGTERM, 20.0),),
        death_signal=signal.SIGTERM,
    )
    child.start()
    server = Keycloak(f"http://127.0.0.1:{port}", child, password)
    try:
        wait_for(lambda: _serves(server) or not child.running(), "Keycloak serves")
        assert child.running(), (folder / "keycloak.log").read_text()[-3000:]
        yield server
    finally:
        stop([child])


def realm() -> dict[str, Any]:
    """Return the realm that Trimtab ships, with tenants, people, and two clients that accept passwords."""
    made: dict[str, Any] = json.loads((ROOT / "deploy/keycloak/realm.json").read_text())
    [tenants] = made["groups"]
    [default] = tenants["subGroups"]
    tenants["subGroups"] += [{**copy.deepcopy(default), "name": name} for name in TENANTS]
    made["users"] += [_user(name, groups) for name, groups in PEOPLE.items()]
    for user in made["users"]:
        if user["username"] == "olga":
            user["realmRoles"] = [*user["realmRoles"], "operator"]
        if user["username"] == "dora":
            user["enabled"] = False
    cli = next(client for client in made["clients"] if client["clientId"] == "trimtab-cli")
    for name in (CLIENT, OTHER_CLIENT):
        client = {**copy.deepcopy(cli), "clientId": name, "directAccessGrantsEnabled": True}
        if name == OTHER_CLIENT:
            client["protocolMappers"] = [item for item in client["protocolMappers"] if item["name"] != "audience"]
        made["clients"].append(client)
        made["scopeMappings"].append({"client": name, "roles": ["operator"]})
    # Tests sign in often, and wrongly.
    made["bruteForceProtected"] = False
    made["oauth2DevicePollingInterval"] = 1
    return made


def _user(name: str, groups: Sequence[str]) -> dict[str, Any]:
    return {
        "username": name,
        "enabled": True,
        "email": f"{name}@example.org",
        "emailVerified": True,
        "firstName": name.capitalize(),
        "lastName": "Example",
        "credentials": [{"type": "password", "value": PASSWORD}],
        "groups": list(groups),
        # Whoever is added by hand has these by themselves; an import takes people as they are described.
        "realmRoles": [f"default-roles-{REALM}"],
    }


def _answer(answer: httpx.Response) -> Any:
    answer.raise_for_status()
    return answer.json() if answer.content else None


def _serves(server: Keycloak) -> bool:
    try:
        return httpx.get(f"{server.issuer}/.well-known/openid-configuration", timeout=10).is_success
    except httpx.TransportError:
        return False


def _link(source: str, target: str) -> None:
    """Make a hard link if the file systems allow it, to save a copy of 170 MB."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
