"""The differences between the realm of a Keycloak and the realm that Trimtab needs, each with its repair."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from service.keycloak.admin_api import Json, Server

ROLES = ("viewer", "member", "admin", "agent")
TENANTS = "tenants"
CONSOLE_VARIABLE = re.compile(r"\$\{TRIMTAB_CONSOLE_URL:[^}]*\}")
# Lists and objects of a client that are compared one by one.
COMPARED_SEPARATELY = {"attributes", "protocolMappers", "redirectUris", "webOrigins"}
PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Difference:
    """A difference. `repair` removes it; without one it is a choice that `provision` leaves to the operator."""

    subject: str
    problem: str
    repair: Callable[[], None] | None = None


def shipped(name: str, console: str) -> Json:
    """Return the realm that ships with Trimtab, under the name `name` and for the console at `console`."""
    places = (PACKAGE / "_built", PACKAGE.parent)
    file = next(path for place in places if (path := place / "deploy/keycloak/realm.json").is_file())
    realm = json.loads(CONSOLE_VARIABLE.sub(lambda _: console.rstrip("/"), file.read_text()))
    realm["realm"] = name
    return realm


def differences(server: Server, wanted: Json, tenants: Sequence[str]) -> Iterator[Difference]:
    """Yield what is missing or differs. A difference may depend on an earlier one: repair each before the next."""
    path = f"/{wanted['realm']}"
    found = server.get(path)
    if found is None:
        yield Difference(f"realm {wanted['realm']}", "is missing", partial(server.post, "", wanted))
        found = server.get(path)
        if found is None:
            return
    yield from _settings(wanted, found)
    yield from _roles(server, path, wanted)
    yield from _groups(server, path, tenants)
    for client in wanted["clients"]:
        yield from _client(server, path, client)
    yield from _scopes(server, path, wanted)
    yield from _accounts(server, path, wanted)


def _settings(wanted: Json, found: Json) -> Iterator[Difference]:
    for name, value in wanted.items():
        if isinstance(value, list | dict) or name in ("realm", "displayName"):
            continue
        if found.get(name) != value:
            yield Difference("realm", f"{name} is {found.get(name)!r}; Trimtab ships {value!r}")


def _roles(server: Server, path: str, wanted: Json) -> Iterator[Difference]:
    for role in wanted["roles"]["realm"]:
        if server.get(f"{path}/roles/{role['name']}") is None:
            yield Difference(f"realm role {role['name']}", "is missing", partial(server.post, f"{path}/roles", role))


def _groups(server: Server, path: str, tenants: Sequence[str]) -> Iterator[Difference]:
    for tenant in tenants:
        for names in ([TENANTS], [TENANTS, tenant], *([TENANTS, tenant, role] for role in ROLES)):
            whole = "/" + "/".join(names)
            if server.get(f"{path}/group-by-path{whole}") is None:
                yield Difference(f"group {whole}", "is missing", partial(_add_group, server, path, names))


def _add_group(server: Server, path: str, names: Sequence[str]) -> None:
    body = {"name": names[-1]}
    if len(names) == 1:
        server.post(f"{path}/groups", body)
        return
    parent = server.get(f"{path}/group-by-path/{'/'.join(names[:-1])}")
    server.post(f"{path}/groups/{parent['id']}/children", body)


def _client(server: Server, path: str, wanted: Json) -> Iterator[Difference]:
    name = wanted["clientId"]
    found = next(iter(server.get(f"{path}/clients", clientId=name)), None)
    if found is None:
        yield Difference(f"client {name}", "is missing", partial(server.post, f"{path}/clients", wanted))
        return
    address = f"{path}/clients/{found['id']}"
    subject = f"client {name}"

    def change(**fields: Json) -> Callable[[], None]:
        return lambda: server.put(address, {**server.get(address), **fields})

    for key, value in wanted.items():
        if key not in COMPARED_SEPARATELY and key != "name" and found.get(key) != value:
            yield Difference(subject, f"{key} is {found.get(key)!r} instead of {value!r}", change(**{key: value}))
    for key, value in wanted.get("attributes", {}).items():
        current = server.get(address).get("attributes", {})
        if current.get(key) != value:
            problem = f"the attribute {key} is {current.get(key)!r} instead of {value!r}"
            yield Difference(subject, problem, change(attributes={**current, key: value}))
    for key in ("redirectUris", "webOrigins"):
        missing = [value for value in wanted.get(key, []) if value not in found.get(key, [])]
        if missing:
            yield Difference(
                subject, f"{key} has no {', '.join(missing)}", change(**{key: [*found.get(key, []), *missing]})
            )
    yield from _mappers(server, address, subject, wanted, found)


def _mappers(server: Server, address: str, subject: str, wanted: Json, found: Json) -> Iterator[Difference]:
    present = {mapper["name"]: mapper for mapper in found.get("protocolMappers", [])}
    models = f"{address}/protocol-mappers/models"
    for mapper in wanted.get("protocolMappers", []):
        current = present.get(mapper["name"])
        if current is None:
            problem = f"the mapper {mapper['name']} is missing"
            yield Difference(subject, problem, partial(server.post, models, mapper))
        elif wrong := {key: value for key, value in mapper["config"].items() if current["config"].get(key) != value}:
            changed = {**current, "config": {**current["config"], **wrong}}
            yield Difference(
                subject,
                f"the mapper {mapper['name']} differs in {', '.join(sorted(wrong))}",
                partial(server.put, f"{models}/{changed['id']}", changed),
            )


def _scopes(server: Server, path: str, wanted: Json) -> Iterator[Difference]:
    for mapping in wanted["scopeMappings"]:
        client = next(iter(server.get(f"{path}/clients", clientId=mapping["client"])), None)
        if client is None:
            continue
        address = f"{path}/clients/{client['id']}/scope-mappings/realm"
        present = {role["name"] for role in server.get(address)}
        for name in mapping["roles"]:
            role = server.get(f"{path}/roles/{name}")
            if name not in present and role is not None:
                problem = f"tokens do not carry the realm role {name}"
                yield Difference(
                    f"client {mapping['client']}",
                    problem,
                    partial(server.post, address, [role]),
                )


def _accounts(server: Server, path: str, wanted: Json) -> Iterator[Difference]:
    for user in wanted["users"]:
        client = next(iter(server.get(f"{path}/clients", clientId=user["serviceAccountClientId"])), None)
        account = client and server.get(f"{path}/clients/{client['id']}/service-account-user")
        if not account:
            continue
        present = {group["path"] for group in server.get(f"{path}/users/{account['id']}/groups")}
        for whole in user["groups"]:
            group = server.get(f"{path}/group-by-path{whole}")
            if whole not in present and group is not None:
                joined = f"{path}/users/{account['id']}/groups/{group['id']}"
                yield Difference(
                    f"service account of {user['serviceAccountClientId']}",
                    f"is not in {whole}",
                    partial(server.put, joined, {}),
                )
