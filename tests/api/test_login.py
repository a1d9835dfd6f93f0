from __future__ import annotations

from django.test import Client

from service.identity.login import create_code


def test_a_login_link_is_good_once(db: None) -> None:
    code = create_code()
    browser = Client()
    answer = browser.get(f"/login?code={code}")
    assert (answer.status_code, answer.headers["Location"], answer.headers["Cache-Control"]) == (302, "/", "no-store")
    assert browser.get("/api/v1/session").status_code == 200
    # Pressed again by the one who is signed in, it does no harm.
    assert browser.get(f"/login?code={code}").headers["Location"] == "/"
    other = Client()
    answer = other.get(f"/login?code={code}")
    assert answer.headers["Location"] == "/sign-in?error=invalid_login_code"
    assert "trimtab_session" not in other.cookies
    assert other.get("/login").headers["Location"] == "/sign-in?error=invalid_login_code"
