"""Checks of network addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
EVERYWHERE = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))  # not bound to  # nosec B104


# Networks that are not the public internet, or where an address stands for another one. `is_global` of the standard
# library depends on the version of Python, so the registries of IANA for special purposes are written out.
_SPECIAL_4 = [
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        # protocols (with the metadata service of Oracle), documentation, AS112, multicast by AMT, relays of 6to4
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # the host of virtual machines in Azure, which no other machine can reach
    )
]  # fmt: skip
# All of IPv6 but the addresses that are assigned to the internet: ::1, unique local and site-local addresses, the
# IPv4-mapped, -compatible and -translated forms, NAT64, segment routing and multicast are elsewhere.
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6 = [
    ipaddress.IPv6Network(text)
    for text in (
        # protocols (with Teredo, benchmarks and ORCHID), documentation, 6to4, AS112, the former 6bone, documentation
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20",
    )
]  # fmt: skip
# The middle of an address of ISATAP, whose end is an IPv4 address, in any network.
_ISATAP = (0x00005EFE, 0x02005EFE)


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public internet, and stands for no other address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return found.is_global and not any(found in network for network in _SPECIAL_4)
    if found not in _PUBLIC_6 or any(found in network for network in _SPECIAL_6):
        return False
    return found.is_global and (int(found) >> 32) & 0xFFFFFFFF not in _ISATAP


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
