"""The images that containers are built on, and the address of the proxy that the service trusts."""

import re
from ipaddress import IPv4Network, ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.factories.compose import PROXY_ADDRESS, Compose

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILES = sorted((DEPLOY / "images").glob("*.Dockerfile"))
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
# A version that an update of the image's maintainers does not replace by another one.
EXACT = re.compile(r":\d+\.\d+(\.\d+)?(-\w+)*$")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_a_base_image_has_a_digest_or_can_be_given_one(path: Path) -> None:
    text = path.read_text()
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    for base in bases:
        argument = re.fullmatch(r"\$\{(\w+)\}", base)
        assert argument is not None or DIGEST.search(base), base
        if argument is not None:
            default = defaults[argument[1]]
            assert EXACT.search(default) or DIGEST.search(default), default
    if path.stem == "agent":  # agents run on other machines than the service
        assert not [service for service in COMPOSE["services"].values() if "agent" in service.get("image", "")]
        return
    builds = [service["build"] for service in COMPOSE["services"].values() if "build" in service]
    [passed] = [build["args"] for build in builds if build["dockerfile"] == f"deploy/images/{path.name}"]
    assert sorted(passed) == sorted(defaults)


def test_an_image_that_is_not_built_here_has_a_digest_or_can_be_given_one() -> None:
    built = {service["image"] for service in COMPOSE["services"].values() if "build" in service}
    others = {service["image"] for service in COMPOSE["services"].values()} - built
    assert others
    for image in others:
        given = re.fullmatch(r"\$\{\w+_IMAGE:-([^}]+)\}", image)
        assert DIGEST.search(image) or (given and EXACT.search(given[1])), image


def test_the_service_trusts_the_address_of_the_proxy_and_no_other_container_gets_it() -> None:
    compose = Compose({})
    for name in ("web", "grpc"):
        assert compose.environment(name)["FORWARDED_ALLOW_IPS"] == PROXY_ADDRESS
    text = re.sub(r"\$\{TRIMTAB_NETWORK:-([^}]*)\}", r"\1", (DEPLOY / "compose.yaml").read_text())
    filled = yaml.safe_load(text)
    assert filled["services"]["proxy"]["networks"]["default"]["ipv4_address"] == PROXY_ADDRESS
    [network] = filled["networks"]["default"]["ipam"]["config"]
    assert ip_address(PROXY_ADDRESS) in ip_network(network["subnet"])
    assert ip_address(PROXY_ADDRESS) not in ip_network(network["ip_range"])
    assert IPv4Network(network["ip_range"]).subnet_of(IPv4Network(network["subnet"]))
