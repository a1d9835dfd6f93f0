"""The addresses that a webhook may reach. Resolver and socket are stubs, so that nothing connects anywhere."""

from __future__ import annotations

import io
import socket
from typing import Any

import pytest

from service.notices import webhook
from service.notices.webhook import NotDelivered
from service.platform.addresses import is_public, networks

PRIVATE = [
    # loopback, this network, private, shared, link-local with metadata services
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *("100.64.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16"),
    # protocols (with a metadata service), documentation, AS112, AMT, relays of 6to4, benchmarks, multicast, reserved
    *("192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.31.196.1"),
    *("192.52.193.1", "192.88.99.1", "192.88.99.2", "192.175.48.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    # loopback, unspecified, link-local, site-local, unique local with metadata services, multicast
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "feff::1", "fc00::1", "fd00::1", "fd00:ec2::254", "ff02::1"),
    # an IPv4 address within: mapped, compatible, translated, NAT64, local NAT64, 6to4, Teredo, ISATAP
    *("::ffff:10.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:0:7f00:1"),
    *("::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::1"),
    *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:7f00:1"),
    # protocols, benchmarks, ORCHID, drone identities, documentation, AS112, segment routing, discard-only, 6bone
    *("2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:db8::1"),
    *("3fff::1", "3fff:fff::1", "5f00::1", "2620:4f:8000::1", "100::1", "100:0:0:1::1", "3ffe::1"),
    # not assigned to anybody
    *("4000::1", "8000::1", "e000::1", "200::1"),
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "192.0.1.1",
    "198.20.0.1",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not webhook.may_reach(address, ())
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_reached_by_tls(address: str) -> None:
    assert webhook.may_reach(address, ())
    assert not webhook.may_reach(address, (), secure=False)


@pytest.mark.parametrize("address", ["::ffff:8.8.8.8"])
def test_a_mapped_address_is_the_address_within(address: str) -> None:
    assert webhook.may_reach(address, ())
    assert webhook.may_reach("::ffff:10.1.2.3", networks("10.0.0.0/8"), secure=False)


class Network:
    """A name server with answers that change from question to question, and a server behind each address."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[list[str]] = []
        self.asked: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self.sent = b""
        self.reply = b"HTTP/1.1 204 No Content\r\n\r\n"
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)
        monkeypatch.setattr(socket, "create_connection", self._connect)

    def _resolve(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        found = self.answers.pop(0) if self.answers else []
        if not found:
            raise socket.gaierror("unknown")
        return [(0, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    def _connect(self, address: tuple[str, int], timeout: float) -> Link:
        self.connected.append(address)
        return Link(self)


class Link:
    """A connection that keeps what is sent and answers with the reply."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def sendall(self, data: bytes) -> None:
        self._network.sent += bytes(data)

    def makefile(self, *_: Any, **__: Any) -> io.BytesIO:
        return io.BytesIO(self._network.reply)

    def shutdown(self, _: int) -> None:
        """End nothing."""

    def close(self) -> None:
        """End nothing."""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


HOST = "http://hooks.example:8080/in?a=1"
ALLOWED = networks("10.1.0.0/16")


def test_the_connection_goes_to_the_address_that_was_checked(network: Network) -> None:
    """The second answer of the name server would lead to this machine."""
    network.answers = [["10.1.2.3"], ["127.0.0.1"]]
    assert webhook.post(HOST, {}, b"{}", ALLOWED) == 204
    assert (network.asked, network.connected) == (["hooks.example"], [("10.1.2.3", 8080)])
    assert network.sent.startswith(b"POST /in?a=1 HTTP/1.1\r\nHost: hooks.example:8080\r\n")


def test_of_several_addresses_only_the_allowed_one_is_reached(network: Network) -> None:
    network.answers = [["127.0.0.1", "::ffff:0:7f00:1", "10.1.2.3"]]
    webhook.post(HOST, {}, b"{}", ALLOWED)
    assert network.connected == [("10.1.2.3", 8080)]


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("https://hooks.example/", ["127.0.0.1"]),
        ("https://127.0.0.1/", ["127.0.0.1"]),
        ("https://2130706433/", ["127.0.0.1"]),
        ("https://0x7f.1/", ["127.0.0.1"]),
        ("https://[::ffff:0:7f00:1]/", ["::ffff:0:7f00:1"]),
        ("https://[::127.0.0.1]/", ["::7f00:1"]),
        ("https://localhost./", ["::1", "127.0.0.1"]),
        ("https://metadata.example/", ["fd00:ec2::254", "169.254.169.254"]),
        ("http://hooks.example/", ["8.8.8.8"]),
    ],
)
def test_nothing_is_sent_to_an_address_that_may_not_be_reached(
    network: Network, target: str, answer: list[str]
) -> None:
    network.answers = [answer]
    with pytest.raises(NotDelivered) as caught:
        webhook.post(target, {}, b"{}", ())
    assert caught.value.lasting
    assert (network.connected, network.sent) == ([], b"")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(network: Network, status: int) -> None:
    network.answers = [["10.1.2.3"], ["127.0.0.1"]]
    network.reply = f"HTTP/1.1 {status} Elsewhere\r\nLocation: http://127.0.0.1:8470/api\r\n\r\n".encode()
    with pytest.raises(NotDelivered, match=f"status {status}"):
        webhook.post(HOST, {}, b"{}", ALLOWED)
    assert network.connected == [("10.1.2.3", 8080)]
    assert network.asked == ["hooks.example"]


def test_a_proxy_of_the_environment_is_not_asked(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    network.answers = [["10.1.2.3"]]
    webhook.post(HOST, {}, b"{}", ALLOWED)
    assert network.connected == [("10.1.2.3", 8080)]
