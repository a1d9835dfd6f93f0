"""The address of the service and the user's credentials: from arguments, the environment or `trimtab login`."""

import ipaddress
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trimtab._internal.connection import keyring
from trimtab.errors import InvalidInput, Unauthenticated

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

DEFAULT_ADDRESS = "127.0.0.1:8471"
DEFAULT_PORT = 8471


@dataclass(frozen=True)
class Address:
    """A gRPC address. `secure` means that the connection uses TLS."""

    target: str
    secure: bool

    def __str__(self) -> str:
        if self.secure:
            return f"grpcs://{self.target}"
        return self.target if _is_loopback(self.target) else f"grpc://{self.target}"

    @classmethod
    def parse(cls, text: str, *, plaintext: bool = False, tls: bool = False) -> "Address":
        """Parse HOST, HOST:PORT, grpc://HOST:PORT (not encrypted) or grpcs://HOST:PORT (TLS).

        Without a scheme the connection uses TLS, unless the service is on this machine. `plaintext` and `tls` override
        this.

        Raises:
            InvalidInput: the text has another form (for example the address of the web console), or the scheme
                contradicts `plaintext` or `tls`.
        """
        scheme, separator, rest = text.strip().rpartition("://")
        if separator and scheme not in ("grpc", "grpcs"):
            allowed = "HOST:PORT of the gRPC port, grpc://HOST:PORT (not encrypted) or grpcs://HOST:PORT (TLS)"
            raise InvalidInput.of("address", text, allowed)
        rest = rest.rstrip("/")
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            host, port = rest, str(DEFAULT_PORT)
        bare_ipv6 = ":" in host and not host.startswith("[")
        if not host or "/" in rest or bare_ipv6 or not (port.isdecimal() and 0 < int(port) < 65536):
            raise InvalidInput.of("address", text, "HOST:PORT, with an IPv6 address in brackets")
        if plaintext and (tls or scheme == "grpcs"):
            allowed = "it only with an address grpc:// or without a scheme, and without a ca"
            raise InvalidInput.of("plaintext", True, allowed)
        if tls and scheme == "grpc":
            allowed = "it only with an address grpcs:// or without a scheme, because grpc:// does not encrypt"
            raise InvalidInput.of("ca", text, allowed)
        target = f"{host}:{port}"
        if scheme:
            return cls(target, scheme == "grpcs")
        return cls(target, tls or not (plaintext or _is_loopback(target)))


def _is_loopback(target: str) -> bool:
    host = target.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Session:
    """The tokens that an identity provider issued at `trimtab login`. The refresh token renews the access token.

    `expires_at` is in seconds since 1970-01-01 UTC, by this machine's clock.
    """

    issuer: str
    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: float


@dataclass(frozen=True)
class Login:
    """An address and the credentials for it: a token, or a session of the identity provider.

    `tenant` selects a tenant, for members of several. `ca` is a PEM file with the authorities to trust in place of the
    system's. `kept` means that the session is stored, and that a renewed session must be stored as well.
    """

    address: Address
    token: str = field(default="", repr=False)
    session: Session | None = None
    tenant: str = ""
    ca: str = ""
    kept: bool = False


def find(
    address: str | None = None,
    token: str | None = None,
    tenant: str | None = None,
    ca: str | None = None,
    *,
    plaintext: bool = False,
) -> Login:
    """Return the login to use.

    Each part comes from the argument, else from the environment (TRIMTAB_URL, TRIMTAB_TOKEN, TRIMTAB_TENANT,
    TRIMTAB_TLS_CA), else from the stored login. A stored token is sent only to the address that it was stored for.

    Raises:
        InvalidInput: the address is malformed.
        Unauthenticated: there is no token.
    """
    given = token or os.environ.get("TRIMTAB_TOKEN")
    kept = _read()
    where = Address.parse(
        address or os.environ.get("TRIMTAB_URL") or kept.default or DEFAULT_ADDRESS, plaintext=plaintext, tls=bool(ca)
    )
    entry = kept.logins.get(str(where), {})
    meant = tenant or os.environ.get("TRIMTAB_TENANT") or (str(entry.get("tenant", "")) if not given else "")
    trusted = trusted_file(ca) or str(entry.get("ca", ""))
    if given:
        return Login(where, clean(given), tenant=meant, ca=trusted)
    stored = _stored(where, entry)
    if stored is None:
        raise Unauthenticated(
            "missing_token",
            f"There is no token for {where}: pass token=..., set TRIMTAB_TOKEN, or run `trimtab login {where}`.",
        )
    return replace(stored, tenant=meant, ca=trusted)


def trusted_file(ca: str | None) -> str:
    """Return the file of trusted authorities: `ca`, else TRIMTAB_TLS_CA, else ""."""
    return ca or os.environ.get("TRIMTAB_TLS_CA", "")


def default_address() -> Address:
    """Return the address to use if none is given. Raises InvalidInput if TRIMTAB_URL is malformed."""
    return Address.parse(os.environ.get("TRIMTAB_URL") or _read().default or DEFAULT_ADDRESS)


def stored(address: Address) -> Login | None:
    """Return the stored login of an address, or None."""
    return _stored(address, _read().logins.get(str(address), {}))


def clean(token: str) -> str:
    """Return the token without surrounding white space. The InvalidInput for a malformed token does not show it."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput.of("token", "…", "one line of printable ASCII characters without spaces")
    return token


def store(login: Login) -> str:
    """Store the login for this user, make its address the default, and return where it is stored.

    It is stored in the system's keyring if the package `keyring` is installed and finds one, else in a file that only
    the user can read.
    """
    secret = {"session": asdict(login.session)} if login.session else {"token": login.token}
    backend = keyring.usable()
    if backend is not None and keyring.put(backend, str(login.address), json.dumps(secret)):
        entry: dict[str, Any] = {"keyring": True}
    else:
        backend, entry = None, dict(secret)
    with _locked():
        kept = _read()
        _write(str(login.address), {**kept.logins, str(login.address): {**entry, **_public_part(login)}})
    return "the system's keyring" if backend is not None else str(location())


def _public_part(login: Login) -> dict[str, str]:
    """Return the parts of a login that are not secret."""
    # An absolute path names the same file from every working directory.
    return {"tenant": login.tenant, "ca": str(Path(login.ca).absolute()) if login.ca else ""}


def forget(address: Address) -> Login | None:
    """Remove the stored login of an address and return it."""
    with _locked():
        kept = _read()
        entry = kept.logins.get(str(address), {})
        found = _stored(address, entry)
        if entry.get("keyring"):
            keyring.remove(str(address))
        left = {name: item for name, item in kept.logins.items() if name != str(address)}
        if entry:
            _write("" if kept.default == str(address) else kept.default, left)
    return found


def renewed(login: Login, renew: Callable[[Session], Session]) -> Login:
    """Return the login with a renewed session, and store the session if the login is stored.

    The session comes from `renew`, or from another process that has renewed it already. Raises what `renew` raises.
    """
    assert login.session is not None
    if not login.kept:
        return replace(login, session=renew(login.session))
    # Only one process at a time asks the identity provider. This may take seconds but does not block readers.
    with _locked():
        now = stored(login.address)
        if now and now.session and now.session.access_token != login.session.access_token:
            return replace(login, session=now.session)
        following = renew(login.session)
        # If the user has logged out or in again in the meantime, that stands.
        if now and now.session and now.session.refresh_token == login.session.refresh_token:
            _replace_session(login.address, following)
        return replace(login, session=following)


def _replace_session(address: Address, session: Session) -> None:
    kept, secret = _read(), {"session": asdict(session)}
    entry = kept.logins[str(address)]
    backend = keyring.usable() if entry.get("keyring") else None
    if backend is not None:
        keyring.put(backend, str(address), json.dumps(secret))
    else:
        _write(kept.default, {**kept.logins, str(address): {**entry, **secret}})


def location() -> Path:
    """Return the file of stored logins: $XDG_CONFIG_HOME/trimtab/credentials.json, by default under ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME")
    # The XDG specification says to ignore relative paths.
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    return folder / "trimtab" / "credentials.json"


@contextmanager
def _locked() -> Iterator[None]:
    """Lock the stored logins against other processes of this user, on systems that have flock."""
    folder = location().parent
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A child that was forked meanwhile has the descriptor, too, so that closing it would not unlock the file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


@dataclass(frozen=True)
class _Kept:
    """The content of the file. `logins` maps an address to {"token"}, {"session"} or {"keyring": true}, and to
    {"tenant", "ca"}."""

    default: str
    logins: dict[str, dict[str, Any]]


def _stored(address: Address, entry: Mapping[str, Any]) -> Login | None:
    if not entry:
        return None
    try:
        secret = json.loads(keyring.get(str(address))) if entry.get("keyring") else entry
        tenant, ca = str(entry.get("tenant", "")), str(entry.get("ca", ""))
        if "session" in secret:
            return Login(address, session=Session(**secret["session"]), tenant=tenant, ca=ca, kept=True)
        return Login(address, clean(str(secret["token"])), tenant=tenant, ca=ca)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            "unreadable_credentials",
            f"The stored login for {address} cannot be read ({error}): run `trimtab login {address}` again.",
        ) from error


def _read() -> _Kept:
    path = location()
    try:
        content = json.loads(path.read_text())
        if "tokens" in content:  # written by a version without sessions
            logins: dict[str, dict[str, Any]] = {
                str(key): {"token": str(value)} for key, value in content["tokens"].items()
            }
        else:
            logins = {str(key): dict(value) for key, value in content["logins"].items()}
        return _Kept(str(content["default"]), logins)
    except FileNotFoundError:
        return _Kept("", {})
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise InvalidInput(
            "unreadable_credentials", f"{path} cannot be read ({error}): remove it and run `trimtab login` again."
        ) from error


def _write(default: str, logins: Mapping[str, Mapping[str, Any]]) -> None:
    path = location()
    path.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp creates the file with mode 0600, and the rename is atomic.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump({"default": default, "logins": logins}, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
