"""Where the service is and what proves who the user is: arguments, environment, or what `trimtab login` stored."""

import ipaddress
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trimtab import keyring
from trimtab.errors import InvalidInput, Unauthenticated

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

DEFAULT_ADDRESS = "127.0.0.1:8471"
DEFAULT_PORT = 8471


@dataclass(frozen=True)
class Address:
    """A gRPC address; `secure`: over TLS."""

    target: str
    secure: bool

    def __str__(self) -> str:
        if self.secure:
            return f"grpcs://{self.target}"
        return self.target if _is_loopback(self.target) else f"grpc://{self.target}"

    @classmethod
    def parse(cls, text: str, *, plaintext: bool = False, tls: bool = False) -> "Address":
        """Reads HOST, HOST:PORT, grpc://HOST:PORT (unencrypted) or grpcs://HOST:PORT (TLS).

        Without a scheme it is TLS, unless the service is on this machine; `plaintext` and `tls` decide otherwise.

        Raises:
            InvalidInput: anything else, for example the address of the web console, or a scheme that contradicts.
        """
        scheme, separator, rest = text.strip().rpartition("://")
        if separator and scheme not in ("grpc", "grpcs"):
            raise InvalidInput.of("address", text, "HOST:PORT of the gRPC port, grpc://HOST:PORT, or grpcs:// for TLS")
        rest = rest.rstrip("/")
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            host, port = rest, str(DEFAULT_PORT)
        bare_ipv6 = ":" in host and not host.startswith("[")
        if not host or "/" in rest or bare_ipv6 or not (port.isdecimal() and 0 < int(port) < 65536):
            raise InvalidInput.of("address", text, "HOST:PORT, with an IPv6 address in brackets")
        if plaintext and (tls or scheme == "grpcs"):
            raise InvalidInput.of("plaintext", True, "it with an address grpc:// or without a scheme, and without a ca")
        if tls and scheme == "grpc":
            raise InvalidInput.of("ca", text, "with an address grpcs:// or without a scheme: this one is not encrypted")
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
    """What an identity provider gave out at `trimtab login`. The access token is renewed with the refresh token.

    `expires_at` is in seconds since 1970, by this machine's clock.
    """

    issuer: str
    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: float


@dataclass(frozen=True)
class Login:
    """An address and what to show there: a token, or a session of the identity provider.

    `tenant`: which one is meant, for members of several. `ca`: a PEM file of the authorities to believe, in place of
    those that everybody knows. `kept`: the session is the stored one, and its successor is to be stored too.
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
    """The login to use: each part from the argument, else from the environment (TRIMTAB_URL, TRIMTAB_TOKEN,
    TRIMTAB_TENANT, TRIMTAB_TLS_CA), else what was stored.

    What is stored is only ever sent to the address it was stored for.

    Raises:
        InvalidInput: an address that is none.
        Unauthenticated: there is no token to be found.
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
    """The file of authorities that is meant: the argument's, else TRIMTAB_TLS_CA's; "" where there is neither."""
    return ca or os.environ.get("TRIMTAB_TLS_CA", "")


def default_address() -> Address:
    """The address that is meant where none is given. Raises InvalidInput where TRIMTAB_URL is none."""
    return Address.parse(os.environ.get("TRIMTAB_URL") or _read().default or DEFAULT_ADDRESS)


def stored(address: Address) -> Login | None:
    """What is stored for an address."""
    return _stored(address, _read().logins.get(str(address), {}))


def clean(token: str) -> str:
    """The token without white space around it. Raises InvalidInput, without the token, where it cannot be one."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput.of("token", "…", "one line of printable ASCII characters without spaces")
    return token


def store(login: Login) -> str:
    """Keeps the login for this user and makes its address the default one; where it was put.

    That is the system's keyring where the package `keyring` is installed and finds one, else a file that only the user
    can read.
    """
    secret = {"session": asdict(login.session)} if login.session else {"token": login.token}
    ring = keyring.usable()
    if ring is not None and keyring.put(ring, str(login.address), json.dumps(secret)):
        entry: dict[str, Any] = {"keyring": True}
    else:
        ring, entry = None, dict(secret)
    with _locked():
        kept = _read()
        _write(str(login.address), {**kept.logins, str(login.address): {**entry, **_beside(login)}})
    return "the system's keyring" if ring is not None else str(location())


def _beside(login: Login) -> dict[str, str]:
    """What is stored beside the secret."""
    # From another folder the same file is meant.
    return {"tenant": login.tenant, "ca": str(Path(login.ca).absolute()) if login.ca else ""}


def forget(address: Address) -> Login | None:
    """Removes what is stored for an address; what it was."""
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
    """The login with the next session, stored if this one is: from `renew`, or from another process that was faster.

    Raises what `renew` does.
    """
    assert login.session is not None
    if not login.kept:
        return replace(login, session=renew(login.session))
    # One process at a time asks the identity provider; that may take seconds, and hinders nobody who only reads.
    with _locked():
        now = stored(login.address)
        if now and now.session and now.session.access_token != login.session.access_token:
            return replace(login, session=now.session)
        following = renew(login.session)
        # Logged out or logged in anew in the meantime: that stands.
        if now and now.session and now.session.refresh_token == login.session.refresh_token:
            _replace_session(login.address, following)
        return replace(login, session=following)


def _replace_session(address: Address, session: Session) -> None:
    kept, secret = _read(), {"session": asdict(session)}
    entry = kept.logins[str(address)]
    ring = keyring.usable() if entry.get("keyring") else None
    if ring is not None:
        keyring.put(ring, str(address), json.dumps(secret))
    else:
        _write(kept.default, {**kept.logins, str(address): {**entry, **secret}})


def location() -> Path:
    """The file of stored logins: $XDG_CONFIG_HOME/trimtab/credentials.json, by default under ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME")
    # The XDG specification has relative paths ignored.
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    return folder / "trimtab" / "credentials.json"


@contextmanager
def _locked() -> Iterator[None]:
    """Keeps other processes of this user from changing what is stored, where the system can."""
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
        os.close(descriptor)


@dataclass(frozen=True)
class _Kept:
    """The file. `logins`: by address, {"token"} or {"session"} or {"keyring": true}, and {"tenant", "ca"}."""

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
        if "tokens" in content:  # of a version before sessions
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
    # mkstemp's files have mode 0600 from the start; the rename makes the change whole.
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
