"""Encryption of the gRPC port. Changed certificate files are read without a restart."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import grpc

from service.logger import Logger
from service.platform.addresses import is_loopback

logger = Logger(__name__)


class TlsError(ValueError):
    """The options or files for TLS cannot be used. The message says what to do."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. With `client_ca`, clients need a certificate that it has signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials for the port. Each new connection gets the present certificate of the files.

        Raises:
            TlsError: a file cannot be read.
        """
        certificates = _Certificates(self)
        return grpc.dynamic_ssl_server_credentials(
            certificates.current(), certificates.current, require_client_authentication=self.client_ca is not None
        )


class _Certificates:
    """The certificates in the files. Thread-safe, because gRPC calls it at each handshake from its own threads."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._guard = threading.Lock()
        self._stamp = self._look()
        self._current = self._read()

    def current(self) -> grpc.ServerCertificateConfiguration:
        """Return the certificates, read again if the files have changed. If the files cannot be read or are incomplete,
        the old certificates stay in use."""
        with self._guard:
            try:
                stamp = self._look()
                if stamp != self._stamp:
                    self._current, self._stamp = self._read(), stamp
                    logger.info("the certificate of the gRPC port was read again")
            except TlsError as error:
                logger.warning("the old certificate stays in use", error=error)
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
    """Return the files to serve with, or None for no encryption: on loopback addresses, or with `plaintext`.

    Raises:
        TlsError: the options contradict each other, or other machines would connect without encryption.
    """
    if (certificate is None) != (key is None) or (client_ca is not None and certificate is None):
        raise TlsError("--tls-cert and --tls-key need each other, and --tls-client-ca needs both")
    if certificate is not None and key is not None:
        if plaintext:
            raise TlsError("--plaintext contradicts --tls-cert")
        return TlsFiles(certificate, key, client_ca)
    if not plaintext and not is_loopback(host):
        raise TlsError(
            f"other machines can reach {host}. Use --tls-cert and --tls-key, or --plaintext if a proxy in front of"
            " this port encrypts"
        )
    return None
