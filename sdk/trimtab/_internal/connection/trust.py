"""The trusted certificate authorities: the user's own from a PEM file, or the system's."""

from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    import ssl


def roots(ca: str) -> bytes | None:
    """Return the content of the PEM file for gRPC.

    Without a file return None: gRPC then uses its own list, or the file in GRPC_DEFAULT_SSL_ROOTS_FILE_PATH.

    Raises:
        InvalidInput: the file cannot be read or contains no certificates.
    """
    if not ca:
        return None
    context(ca)  # gRPC would only report that the connection failed
    return Path(ca).read_bytes()


def context(ca: str) -> "ssl.SSLContext":
    """Return the TLS context for HTTPS: the system's authorities and the file's. Raises as `roots` does."""
    # The import is slow. Only programs that connect pay for it.
    import ssl

    made = ssl.create_default_context()
    if ca:
        try:
            made.load_verify_locations(ca)
        except OSError as error:  # ssl.SSLError is one
            why = error.strerror or "it contains no certificate"
            raise InvalidInput.of("ca", ca, f"a readable PEM file of certificates ({why})") from None
    return made
