"""Where the service is and what proves who the user is: arguments, environment, or what `trimtab login` stored."""

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.errors import InvalidInput, Unauthenticated

DEFAULT_ADDRESS = "127.0.0.1:8471"
DEFAULT_PORT = 8471


@dataclass(frozen=True)
class Address:
    """A gRPC address; `secure`: over TLS."""

    target: str
    secure: bool

    def __str__(self) -> str:
        return f"grpcs://{self.target}" if self.secure else self.target

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads HOST, HOST:PORT, grpc://HOST:PORT or grpcs://HOST:PORT.

        Raises:
            InvalidInput: anything else, for example the address of the web console.
        """
        scheme, separator, rest = text.strip().rpartition("://")
        if not separator:
            scheme = "grpc"
        if scheme not in ("grpc", "grpcs"):
            raise InvalidInput.of("address", text, "HOST:PORT of the gRPC port, grpc://HOST:PORT, or grpcs:// for TLS")
        rest = rest.rstrip("/")
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            host, port = rest, str(DEFAULT_PORT)
        bare_ipv6 = ":" in host and not host.startswith("[")
        if not host or "/" in rest or bare_ipv6 or not (port.isdecimal() and 0 < int(port) < 65536):
            raise InvalidInput.of("address", text, "HOST:PORT, with an IPv6 address in brackets")
        return cls(f"{host}:{port}", scheme == "grpcs")


@dataclass(frozen=True)
class Login:
    """An address and the token to show there."""

    address: Address
    token: str = field(repr=False)


def find(address: str | None = None, token: str | None = None) -> Login:
    """The login to use: each half from the argument, else TRIMTAB_URL and TRIMTAB_TOKEN, else what was stored.

    A stored token is only ever sent to the address it was stored for.

    Raises:
        InvalidInput: an address that is none.
        Unauthenticated: there is no token to be found.
    """
    kept = _read()
    where = Address.parse(address or os.environ.get("TRIMTAB_URL") or kept.default or DEFAULT_ADDRESS)
    found = token or os.environ.get("TRIMTAB_TOKEN") or kept.tokens.get(str(where))
    if not found:
        raise Unauthenticated(
            "missing_token",
            f"There is no token for {where}: pass token=..., set TRIMTAB_TOKEN, or run `trimtab login {where}`.",
        )
    return Login(where, clean(found))


def clean(token: str) -> str:
    """The token without white space around it. Raises InvalidInput, without the token, where it cannot be one."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput.of("token", "…", "one line of printable ASCII characters without spaces")
    return token


def store(login: Login) -> Path:
    """Keeps the login in a file that only the user can read, and makes its address the default one."""
    kept = _read()
    path = location()
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"default": str(login.address), "tokens": {**kept.tokens, str(login.address): login.token}}
    # mkstemp's files have mode 0600 from the start; the rename makes the change whole.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
    return path


def location() -> Path:
    """The file of stored logins: $XDG_CONFIG_HOME/trimtab/credentials.json, by default under ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME")
    # The XDG specification has relative paths ignored.
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    return folder / "trimtab" / "credentials.json"


@dataclass(frozen=True)
class _Kept:
    default: str
    tokens: dict[str, str]


def _read() -> _Kept:
    path = location()
    try:
        content = json.loads(path.read_text())
        return _Kept(str(content["default"]), {str(key): str(value) for key, value in content["tokens"].items()})
    except FileNotFoundError:
        return _Kept("", {})
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise InvalidInput(
            "unreadable_credentials", f"{path} cannot be read ({error}): remove it and run `trimtab login` again."
        ) from error
