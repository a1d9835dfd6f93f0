"""One request to a webhook, signed as the specification Standard Webhooks describes.

The name of the host is resolved once, and the connection goes to an address that was checked, so that another answer
of the name server cannot lead into the operator's own network. Redirects are not followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Collection
from urllib.parse import urlsplit

from service.platform.addresses import Network, is_public, within

# The time for the whole request, in seconds.
SECONDS = 10.0


class NotDelivered(Exception):
    """A request without success. `status`: the HTTP status, if there was an answer. `lasting`: no retry can help."""

    def __init__(self, reason: str, status: int | None = None, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.status, self.lasting = reason, status, lasting


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret), signed, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def post(target: str, headers: dict[str, str], body: bytes, allowed: Collection[Network]) -> int:
    """Send one POST request, and return the HTTP status, which is 200 to 299.

    `allowed` are the networks that are not public, and yet may be reached. Raises NotDelivered.
    """
    parts = urlsplit(target)
    assert parts.hostname is not None
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = _resolve(parts.hostname, port, allowed, secure=secure)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _Connection(parts.hostname, port, address, secure=secure)
    # A server that sends one byte a second would pass every timeout of a single read.
    watchdog = threading.Timer(SECONDS, connection.abort)
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except ssl.SSLError as error:
        raise NotDelivered(f"TLS failed: {error.reason or error}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise NotDelivered(f"The request failed: {error or type(error).__name__}.") from error
    finally:
        watchdog.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise NotDelivered(f"The server answered with the status {status} instead of 200 to 299.", status)
    return status


def may_reach(address: str, allowed: Collection[Network], *, secure: bool = True) -> bool:
    """Return whether a webhook may reach an IP address: a public one by TLS, or any that the operator allows."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return within(str(found), allowed) or (secure and is_public(str(found)))


def _resolve(host: str, port: int, allowed: Collection[Network], *, secure: bool) -> str:
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"The host {host!r} has no address: {error}.") from error
    reachable = [address for address in found if may_reach(address, allowed, secure=secure)]
    if not reachable:
        way = "" if secure else " without TLS"
        raise NotDelivered(
            f"Webhooks may not reach {found[0]}{way}. The operator can allow networks with TRIMTAB_WEBHOOK_NETWORKS.",
            lasting=True,
        )
    return reachable[0]


class _Connection(http.client.HTTPConnection):
    """A connection to an address that is resolved already; TLS checks the certificate for the host's name."""

    def __init__(self, host: str, port: int, address: str, *, secure: bool) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self._address = address
        self._context = ssl.create_default_context() if secure else None
        # http.client writes the port into the header Host unless it is this one.
        self.default_port = 443 if secure else 80

    def connect(self) -> None:
        """Connect to the checked address."""
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)

    def abort(self) -> None:
        """End a request that takes too long: its next read or write fails."""
        if self.sock is not None:
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return
