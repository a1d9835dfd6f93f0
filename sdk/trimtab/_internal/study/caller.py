"""The connection, the name and the held trials, which a client and its studies share in a process.

A pickled client or study contains the address of its caller, and no secret. In the process that has the caller, and in
its forked children, it stands for the same caller. Elsewhere it stands for a new one, with the login of that process.
"""

import uuid
from collections.abc import Callable
from weakref import WeakValueDictionary

from trimtab._internal.connection import forks, login
from trimtab._internal.connection.client_id import ClientId
from trimtab._internal.connection.login import Address, Login
from trimtab._internal.connection.transport import Transport
from trimtab._internal.study.held_trials import HeldTrials
from trimtab.errors import TrimtabError, Unauthenticated

# By key, the callers of this process, and those that were unpickled here.
_known: WeakValueDictionary[str, "Caller"] = WeakValueDictionary()
_unpickled: dict[str, "Caller"] = {}
_guard = forks.Guard()


class Caller:
    """A connection with the name under which it asks. Thread-safe."""

    def __init__(
        self,
        to: Login,
        retry_seconds: float,
        client_id: str | None,
        *,
        copy_of: str = "",
        refusal: TrimtabError | None = None,
    ) -> None:
        """Create the object. `copy_of` is the key of the caller in another process that it stands for."""
        self.transport = Transport(to, retry_seconds, refusal)
        self.client_id = ClientId(client_id, is_copy=bool(copy_of))
        self._key = copy_of or uuid.uuid4().hex
        self._is_copy = bool(copy_of)
        # By study, its identity, and the client_id that was given for it alone.
        self._held: dict[tuple[str, str, str | None], HeldTrials] = {}
        _known[self._key] = self

    def held(self, study: str, study_uid: str, client_id: str | None) -> HeldTrials:
        """Return the trials that this process holds in a study under `client_id`; None: under the caller's."""
        with _guard:
            key = (study, study_uid, client_id)
            if key not in self._held:
                name = self.client_id if client_id is None else ClientId(client_id, is_copy=self._is_copy)
                self._held[key] = HeldTrials(self.transport, study, study_uid, name)
            return self._held[key]

    def forget(self, study: str) -> None:
        """Forget the trials of a study that was deleted."""
        with _guard:
            for key in [key for key in self._held if key[0] == study]:
                del self._held[key]

    def __reduce__(self) -> tuple[Callable[..., "Caller"], tuple[object, ...]]:
        to = self.transport.login
        ca = to.ca if to.address.secure else ""
        return _find, (self._key, str(to.address), to.tenant, ca, self.transport.retry_seconds, self.client_id.given)


def _find(key: str, address: str, tenant: str, ca: str, retry_seconds: float, client_id: str | None) -> Caller:
    """Return the caller of this key, or a new one that calls the same service with this process's login."""
    with _guard:
        known = _known.get(key)
        if known is not None and not known.transport.closed:
            return known
        refusal = None
        try:
            to = login.find(address, None, tenant or None, ca or None)
        except Unauthenticated:
            # The error comes with the first call, because an executor shows no error of unpickling.
            to = Login(Address.parse(address), tenant=tenant, ca=ca)
            refusal = Unauthenticated(
                "missing_token",
                f"A pickled client contains no token, and this process has none for {to.address}: set TRIMTAB_TOKEN in"
                f" its environment, or run `trimtab login {to.address}`.",
            )
        made = _unpickled[key] = Caller(to, retry_seconds, client_id, copy_of=key, refusal=refusal)
        return made
