"""What each call shows: a token, or the access token of a session, which is renewed in time."""

import threading
import time
from dataclasses import replace

from trimtab import login as logins
from trimtab.errors import Unavailable
from trimtab.login import Login

# So long before its end an access token is renewed: clocks differ, and calls take their time.
EARLY_SECONDS = 30.0


class Bearer:
    """The metadata of calls. Thread-safe."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._guard = threading.Lock()
        self._metadata = _metadata(login)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What the next call is to show.

        Raises:
            Unauthenticated: the session is over.
            Unavailable: it cannot be renewed just now, and what there is has expired.
        """
        session = self._login.session
        if session is not None and time.time() > session.expires_at - EARLY_SECONDS:
            self._renew(session.access_token)
        return self._metadata

    def renew(self) -> bool:
        """After a refusal: whether there is now something else to show than before. Raises as `metadata`."""
        session = self._login.session
        if session is None:
            return False
        before = self._metadata
        self._login = replace(self._login, session=replace(session, expires_at=0.0))
        self._renew(session.access_token)
        return self._metadata != before

    def _renew(self, known: str) -> None:
        from trimtab import oidc

        with self._guard:
            session = self._login.session
            # Another thread was faster.
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
