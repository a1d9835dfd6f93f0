"""The user at the other end of a connection from this machine.

Clients of Vizier send no token, so the endpoint answers only processes of its own user. Linux lists the user of each
TCP socket.
"""

import os
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TypeAlias

from trimtab.errors import Forbidden

Place: TypeAlias = tuple[IPv4Address | IPv6Address, int]

# A client may reach an IPv4 address by a socket for IPv6.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ROOT = 0


def expect_own(peer: str, port: int) -> None:
    """Check that the process at `peer` ("ipv4:127.0.0.1:51234") belongs to this user or to root.

    `port` is the endpoint's own. On a system without these tables every local user is accepted.

    Raises:
        Forbidden: it belongs to another user (`other_user`), or it has gone.
    """
    if not _TABLES[0].exists():
        return
    host, _, number = peer.partition(":")[2].replace("%5B", "").replace("%5D", "").rpartition(":")
    caller = (_plain(ip_address(host.strip("[]"))), int(number))
    users = {user for local, remote, user in _connections() if local == caller and remote[1] == port}
    if not users & {os.getuid(), _ROOT}:
        raise Forbidden("other_user", "This endpoint belongs to another user of this machine. Start one of your own.")


def _connections() -> Iterator[tuple[Place, Place, int]]:
    """Yield the local address and port, the remote ones, and the user of each TCP connection of this machine."""
    for table in _TABLES:
        if table.exists():
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, _, _, _, _, user, *_ = line.split()
                yield _place(local), _place(remote), int(user)


def _place(text: str) -> Place:
    """Return an address of the table, in which each four bytes have the machine's order: little-endian."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    address = ip_address(b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4)))
    return _plain(address), int(port, 16)


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address for one that is mapped to IPv6."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
