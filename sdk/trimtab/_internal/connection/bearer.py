"""Credentials of calls: a token, or the access token of a session, which is renewed before it expires."""

import time
from dataclasses import replace

from trimtab._internal.connection import forks
from trimtab._internal.connection import login as logins
from trimtab._internal.connection.login import Login
from trimtab.errors import Unavailable

# An access token is renewed this long before it expires, because clocks differ and calls take time.
EARLY_SECONDS = 30.0


class Bearer:
    """The credentials that each call sends as metadata. Thread-safe."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._guard = forks.Guard()
        self._metadata = _metadata(login)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of the next call.

        Raises:
            Unauthenticated: the session has ended.
            Unavailable: the access token has expired and cannot be renewed now.
        """
        session = self._login.session
        if session is not None and time.time() > session.expires_at - EARLY_SECONDS:
            self._renew(session.access_token)
        return self._metadata

    def renew(self) -> bool:
        """Renew the credentials after a refusal; return whether they have changed. Raises what `metadata` raises."""
        session = self._login.session
        if session is None:
            return False
        before = self._metadata
        self._login = replace(self._login, session=replace(session, expires_at=0.0))
        self._renew(session.access_token)
        return self._metadata != before

    def _renew(self, known: str) -> None:
        from trimtab._internal.connection import oidc

        with self._guard:
            session = self._login.session
            # Another thread has renewed it already.
            if session is None or session.access_token != known:
                return
            try:
                ca = self._login.ca
                self._login = logins.renewed(self._login, lambda session: oidc.renew(session, ca))
            except Unavailable:
                if time.time() > session.expires_at:
                    raise
            self._metadata = _metadata(self._login)


def _metadata(login: Login) -> tuple[tuple[str, str], ...]:
    token = login.session.access_token if login.session else login.token
    shown = (("authorization", f"Bearer {token}"),) if token else ()
    return (*shown, ("trimtab-tenant", login.tenant)) if login.tenant else shown
