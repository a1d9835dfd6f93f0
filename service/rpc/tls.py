"""Encryption of the gRPC port: certificates from files, read again when they change, without a restart."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

import grpc

from service.core.addresses import is_loopback

logger = logging.getLogger(__name__)


class TlsError(ValueError):
    """What was asked for cannot be served. `str()` of it says what to do."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. With `client_ca`, only clients that show a certificate signed by it are served (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """What the port is opened with. Every new connection gets the certificate that the files hold then.

        Raises:
            TlsError: a file cannot be read now.
        """
        certificates = _Certificates(self)
        return grpc.dynamic_ssl_server_credentials(
            certificates.current(), certificates.current, require_client_authentication=self.client_ca is not None
        )


class _Certificates:
    """Thread-safe: gRPC asks at each handshake, from threads of its own."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._guard = threading.Lock()
        self._stamp = self._look()
        self._current = self._read()

    def current(self) -> grpc.ServerCertificateConfiguration:
        """What the files hold, read anew where they have changed. Files that cannot be read, or are half written, leave
        the old certificates in force."""
        with self._guard:
            try:
                stamp = self._look()
                if stamp != self._stamp:
                    self._current, self._stamp = self._read(), stamp
                    logger.info("the certificate of the gRPC port was read anew")
            except TlsError as error:
                logger.warning("%s; the certificate that was read before stays in force", error)
            return self._current

    def _look(self) -> tuple[int, ...]:
        try:
            return tuple(path.stat().st_mtime_ns for path in self._paths())
        except OSError as error:
            raise TlsError(f"a file of the certificate cannot be read: {error}") from None

    def _read(self) -> grpc.ServerCertificateConfiguration:
        files = self._files
        try:
            roots = files.client_ca.read_bytes() if files.client_ca else None
            key, certificate = files.key.read_bytes(), files.certificate.read_bytes()
        except OSError as error:
            raise TlsError(f"a file of the certificate cannot be read: {error}") from None
        for path, content in ((files.key, key), (files.certificate, certificate)):
            if b"-----BEGIN " not in content or not content.rstrip().endswith(b"-----"):
                raise TlsError(f"{path} is not a whole PEM file")
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=roots)

    def _paths(self) -> list[Path]:
        files = self._files
        return [files.certificate, files.key, *([files.client_ca] if files.client_ca else [])]


def chosen(
    host: str, certificate: Path | None, key: Path | None, client_ca: Path | None, *, plaintext: bool
) -> TlsFiles | None:
    """The files to serve with; None: unencrypted, which only loopback addresses are unless `plaintext` says so.

    Raises:
        TlsError: the options contradict each other or leave other machines without encryption.
    """
    if (certificate is None) != (key is None) or (client_ca is not None and certificate is None):
        raise TlsError("--tls-cert and --tls-key belong together, and --tls-client-ca needs both")
    if certificate is not None and key is not None:
        if plaintext:
            raise TlsError("--plaintext contradicts --tls-cert")
        return TlsFiles(certificate, key, client_ca)
    if not plaintext and not is_loopback(host):
        raise TlsError(
            f"other machines can reach {host}: give --tls-cert and --tls-key, or --plaintext where a proxy in front"
            " of this port encrypts"
        )
    return None
