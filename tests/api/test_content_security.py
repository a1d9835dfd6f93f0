from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from service.config import content_security
from service.config.settings import auth


def test_every_response_has_a_content_security_policy(db: None) -> None:
    for path in ("/", "/healthz", "/api/v1/sign-in", "/nowhere.js"):
        said = Client().get(path).headers["Content-Security-Policy"]
        assert "connect-src 'self';" in said
        assert "frame-ancestors 'none'" in said
        assert "script-src" not in said or "unsafe" not in said.partition("script-src")[2]


def test_the_console_may_connect_only_to_the_service_and_the_realm(settings: Any) -> None:
    settings.TRIMTAB_OIDC_ISSUER = "https://sso.example/realms/trimtab"
    assert "connect-src 'self' https://sso.example/realms/trimtab/;" in content_security.policy()


@pytest.mark.parametrize("issuer", ["sso.example", "https://sso.example/a b", "https://x; script-src *", "ftp://x"])
def test_an_issuer_that_is_no_address_is_refused(issuer: str) -> None:
    assert auth.ISSUER.fullmatch(issuer) is None


@pytest.mark.parametrize(
    "issuer", ["https://sso.example:8443/realms/trimtab", "http://127.0.0.1:1/realms/t", "http://[::1]:8/r"]
)
def test_an_issuer_is_a_web_address(issuer: str) -> None:
    assert auth.ISSUER.fullmatch(issuer)
