"""The address of a caller for the audit trail."""

from typing import Any

import pytest

from service.rpc.interceptors import address_of


@pytest.mark.parametrize(
    ("peer", "believed", "forwarded", "expected"),
    [
        ("ipv4:10.0.0.7:51234", "127.0.0.1", "", "10.0.0.7"),
        ("ipv6:%5B::1%5D:1", "127.0.0.1", "", "::1"),
        ("ipv4:127.0.0.1:5", "127.0.0.1", "203.0.113.9", "203.0.113.9"),
        # the caller wrote the first address, and the proxy the last one
        ("ipv4:127.0.0.1:5", "127.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("ipv4:10.0.0.7:5", "*", "203.0.113.9", "203.0.113.9"),
        # a caller without a proxy is not trusted
        ("ipv4:10.0.0.7:5", "127.0.0.1", "203.0.113.9", "10.0.0.7"),
        ("ipv4:127.0.0.1:5", "127.0.0.1", "nonsense", "127.0.0.1"),
    ],
)
def test_only_a_trusted_proxy_states_the_address(
    settings: Any, peer: str, believed: str, forwarded: str, expected: str
) -> None:
    settings.TRIMTAB_BELIEVED_PROXIES = frozenset({believed})
    assert address_of(peer, forwarded) == expected
