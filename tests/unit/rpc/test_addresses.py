"""The address of a caller for the audit trail."""

from typing import Any

import pytest

from service.platform.addresses import networks
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
        ("ipv4:10.0.0.7:5", "192.0.2.1, 10.0.0.0/24", "203.0.113.9", "203.0.113.9"),
        ("ipv6:%5Bfd00::7%5D:5", "fd00::/64", "2001:db8::9", "2001:db8::9"),
        # a caller without a proxy is not trusted
        ("ipv4:10.0.0.7:5", "127.0.0.1", "203.0.113.9", "10.0.0.7"),
        ("ipv4:10.0.1.7:5", "10.0.0.0/24", "203.0.113.9", "10.0.1.7"),
        # nor is one on the same machine, unless the operator names it
        ("ipv4:127.0.0.1:5", "", "203.0.113.9", "127.0.0.1"),
        ("ipv6:%5B::1%5D:5", "", "203.0.113.9", "::1"),
        ("unix:/run/socket", "127.0.0.1", "203.0.113.9", "unix"),
        ("ipv4:127.0.0.1:5", "127.0.0.1", "nonsense", "127.0.0.1"),
    ],
)
def test_only_a_trusted_proxy_states_the_address(
    settings: Any, peer: str, believed: str, forwarded: str, expected: str
) -> None:
    settings.TRIMTAB_BELIEVED_PROXIES = networks(believed)
    assert address_of(peer, forwarded) == expected


def test_no_proxy_is_trusted_by_default_and_only_networks_can_be_named(settings: Any) -> None:
    assert frozenset() == settings.TRIMTAB_BELIEVED_PROXIES
    for wrong in ("proxy.example", "10.0.0.1/8", "300.0.0.1"):
        with pytest.raises(ValueError, match=wrong.partition("/")[0]):
            networks(f"192.0.2.1, {wrong}")
