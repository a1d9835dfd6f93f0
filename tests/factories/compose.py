"""deploy/compose.yaml as plain processes: its commands and environments, with this machine's addresses in them."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.factories.ports import free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
VARIABLES = {
    "TRIMTAB_HOST": "localhost",
    "TRIMTAB_ADMIN_NETWORK": "192.0.2.0/24",
    "TRIMTAB_SECRET_KEY": "hosted-secret",
    "TRIMTAB_REDIS_PASSWORD": "redis-s",
    "POSTGRES_PASSWORD": "super-user-s",
    "TRIMTAB_OWNER_PASSWORD": "owner-s",
    "TRIMTAB_SERVICE_PASSWORD": "service-s",
    "KEYCLOAK_DATABASE_PASSWORD": "keycloak-s",
    "KEYCLOAK_ADMIN_PASSWORD": "administrator-s",
}
PROGRAM = (sys.executable, "-m", "service.main")
# The proxy's address in the network of the file.
PROXY_ADDRESS = "172.30.84.2"
# A variable that must be set, or one with a default.
_VARIABLE = re.compile(r"\$\{(\w+):(?:\?|-([^}]*))\}")


class Compose:
    """The file with these variables filled in. `places` maps HOST:PORT of its network to addresses of this machine.

    `program` is the command `trimtab-service`, and `deploy` the folder with the file, by default of this checkout.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
        deploy: Path = DEPLOY,
    ) -> None:
        self._places = places
        self._program = program
        self._variables = {**VARIABLES, **(variables or {})}
        self.services: dict[str, dict[str, Any]] = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a service."""
        return {key: self._here(str(value)) for key, value in self.services[name].get("environment", {}).items()}

    def command(self, name: str) -> list[str]:
        """Return the command of a service. For Trimtab's own image these are the words after `trimtab-service`."""
        return [self._here(str(word)) for word in self.services[name]["command"]]

    def process(self, name: str) -> list[str]:
        """Return a process of Trimtab on the loopback interface, with the port from `places`."""
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in self.command(name)]
        # Here all processes share one address, so each needs a port of its own for its metrics.
        words = [f"127.0.0.1:{free_port()}" if word.startswith("0.0.0.0:") else word for word in words]
        port = next((here for place, here in self._places.items() if place.startswith(f"{name}:")), "").rpartition(":")[
            2
        ]
        return [*self._program, *words, *(["--port", port] if port else [])]

    def _here(self, text: str) -> str:
        text = _VARIABLE.sub(
            lambda found: self._variables[found[1]] if found[2] is None else self._variables.get(found[1], found[2]),
            text,
        )
        for place, here in self._places.items():
            text = text.replace(place, here)
        return text
