"""Tokens, login codes and sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from service.core.errors import Unauthenticated
from service.identity import login, principals, sessions
from service.identity.models import LoginCode
from service.tenancy import access
from service.tenancy.models import Tenant
from service.tenancy.principal import Role


@pytest.fixture(autouse=True)
def default_tenant(transactional_db: None) -> None:
    """Restore the default tenant: other tests empty the database, and the process caches the tenant's id."""
    Tenant._default_manager.get_or_create(slug="default")
    principals.administrator.cache_clear()
    principals.forget()


def refused(value: str | None, code: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        principals.authenticate_header(value)
    assert caught.value.code == code


def test_the_administrators_token_is_for_the_default_tenant() -> None:
    principal = principals.authenticate_header("Bearer test-token")
    assert (principal.actor, principal.role) == ("administrator", Role.OPERATOR)
    assert principal == principals.authenticate_bearer("test-token")
    for value in (None, "", "test-token", "Bearer ", "Basic test-token"):
        refused(value, "missing_token")
    for value in ("Bearer wrong", "Bearer test-token2", "Bearer tést-token"):
        refused(value, "invalid_token")


def test_the_token_may_be_in_a_file_and_change(tmp_path: Path, settings: Any) -> None:
    file = tmp_path / "admin-token"
    settings.TRIMTAB_ADMIN_TOKEN, settings.TRIMTAB_ADMIN_TOKEN_FILE = "", str(file)
    refused("Bearer first", "invalid_token")
    file.write_text("first\n")
    principals.authenticate_header("Bearer first")
    file.unlink()
    file.write_text("second-token\n")
    principals.authenticate_header("Bearer second-token")
    refused("Bearer first", "invalid_token")


def test_without_an_administrator_token_all_access_is_refused(settings: Any) -> None:
    settings.TRIMTAB_ADMIN_TOKEN, settings.TRIMTAB_ADMIN_TOKEN_FILE = "", ""
    refused("Bearer x", "invalid_token")
    with pytest.raises(Unauthenticated):
        sessions.issue(principals.administrator())


def test_a_login_code_opens_one_session() -> None:
    code = login.create_code()
    principal = login.redeem(code)
    assert principal == replace(principals.administrator(), credential="login-code")
    for spent in (code, "odd", ""):
        with pytest.raises(Unauthenticated) as caught:
            login.redeem(spent)
        assert caught.value.code == "invalid_login_code"
    late = login.create_code()
    access.rows(LoginCode, principals.administrator()).update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(Unauthenticated):
        login.redeem(late)
    assert not access.rows(LoginCode, principals.administrator()).filter(digest=late).exists()


def test_expired_login_codes_are_removed() -> None:
    codes = access.rows(LoginCode, principals.administrator())
    login.create_code()
    codes.update(expires_at=Now() - timedelta(seconds=1))
    login.create_code()
    assert codes.count() == 1


def test_a_session_ends_with_its_token_and_cannot_be_forged(settings: Any) -> None:
    principal = principals.administrator()
    cookie = sessions.issue(principal)
    assert principals.authenticate_cookie(cookie) == replace(principal, credential="session")
    for bad in (None, "", "odd", cookie[:-1] + ("a" if cookie[-1] != "a" else "b")):
        with pytest.raises(Unauthenticated):
            principals.authenticate_cookie(bad)
    settings.TRIMTAB_ADMIN_TOKEN = "another"
    with pytest.raises(Unauthenticated) as caught:
        principals.authenticate_cookie(cookie)
    assert caught.value.code == "session_expired"
