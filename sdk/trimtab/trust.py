"""Whose certificates are believed: those of one's own authority, from a PEM file, or those that everybody knows."""

from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    import ssl


def roots(ca: str) -> bytes | None:
    """The file's content, for gRPC; None without a file: then gRPC takes its own list, or that of
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH.

    Raises:
        InvalidInput: the file has no certificates.
    """
    if not ca:
        return None
    context(ca)  # gRPC itself would say no more than that no connection comes about
    return Path(ca).read_bytes()


def context(ca: str) -> "ssl.SSLContext":
    """For HTTPS: the system's authorities, and those of the file if there is one. Raises InvalidInput as `roots`."""
    # Only those who connect wait for its import.
    import ssl

    made = ssl.create_default_context()
    if ca:
        try:
            made.load_verify_locations(ca)
        except OSError as error:  # ssl.SSLError is one
            why = error.strerror or "no certificate in it"
            raise InvalidInput.of("ca", ca, f"a PEM file of certificates that can be read ({why})") from None
    return made
