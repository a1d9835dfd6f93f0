"""Where a call came from, as the audit trail has it."""

from typing import Any

import pytest

from service.rpc.interceptors import address_of


@pytest.mark.parametrize(
    ("peer", "believed", "forwarded", "expected"),
    [
        ("ipv4:10.0.0.7:51234", "127.0.0.1", "", "10.0.0.7"),
        ("ipv6:%5B::1%5D:1", "127.0.0.1", "", "::1"),
        ("ipv4:127.0.0.1:5", "127.0.0.1", "203.0.113.9", "203.0.113.9"),
        # what the caller wrote in front is not the proxy's word
        ("ipv4:127.0.0.1:5", "127.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("ipv4:10.0.0.7:5", "*", "203.0.113.9", "203.0.113.9"),
        # a stranger may say what he likes
        ("ipv4:10.0.0.7:5", "127.0.0.1", "203.0.113.9", "10.0.0.7"),
        ("ipv4:127.0.0.1:5", "127.0.0.1", "nonsense", "127.0.0.1"),
    ],
)
def test_only_a_proxy_that_is_believed_says_it(
    settings: Any, peer: str, believed: str, forwarded: str, expected: str
) -> None:
    settings.TRIMTAB_BELIEVED_PROXIES = frozenset({believed})
    assert address_of(peer, forwarded) == expected
