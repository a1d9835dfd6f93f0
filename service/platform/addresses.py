"""Checks of network addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
EVERYWHERE = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))  # not bound to  # nosec B104


def networks(text: str) -> frozenset[Network]:
    """Return the networks in a comma-separated list of addresses and networks, such as `10.0.0.7, 192.0.2.0/24`.

    `*` is every network, and "" is none. Raises ValueError with the part that is not a network.
    """
    found: set[Network] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        found.update(EVERYWHERE if part == "*" else (ipaddress.ip_network(part),))
    return frozenset(found)


def within(address: str, allowed: Iterable[Network]) -> bool:
    """Return whether an IP address is in one of the networks. Another text, such as `unix`, is in none."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in allowed)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
