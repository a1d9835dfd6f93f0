"""The addresses that clients use: the console and REST, gRPC, and their certificates."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

import grpc
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.doctor.findings import Deployment, Finding, ok, problem, warning
from service.platform.addresses import is_loopback

SOON_DAYS = 14
NOT_GIVEN = "its address was not given, so it was not checked"
RENEW = "renew it; the service reads replaced files again by itself"


def console(deployment: Deployment) -> Finding:
    """Check that the web process is ready."""
    if not deployment.console:
        return warning(NOT_GIVEN, "name it: --console https://trimtab.example.org")
    url = f"{deployment.console.rstrip('/')}/readyz"
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=_trust(deployment))]
    if is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    start = "start it: trimtab-service web" if deployment.data is None else "see DATA_DIR/logs/web.log"
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=deployment.seconds / 2) as answer:
            answer.read(10_000)
    except urllib.error.HTTPError as error:
        return problem(f"{url} answers {error.code}: {_reason(error)}", "repair what it names, or see its log")
    except (OSError, ValueError) as error:
        return problem(f"{url} does not answer: {_why(error)}", start)
    return ok(f"{url} answers")


def grpc_port(deployment: Deployment) -> Finding:
    """Check that the gRPC process serves."""
    if not deployment.grpc:
        return warning(NOT_GIVEN, "name it: --grpc trimtab.example.org:443")
    host, port = _split(deployment.grpc)
    start = "start it: trimtab-service grpc" if deployment.data is None else "see DATA_DIR/logs/grpc.log"
    try:
        encrypted = _certificate(host, port, deployment.seconds / 3) is not None
    except OSError as error:
        return problem(f"{deployment.grpc} does not answer: {_why(error)}", start)
    direct = (("grpc.enable_http_proxy", 0),) if is_loopback(host) else ()
    roots = deployment.authorities.read_bytes() if deployment.authorities else None
    with (
        grpc.secure_channel(deployment.grpc, grpc.ssl_channel_credentials(roots), options=direct)
        if encrypted
        else grpc.insecure_channel(deployment.grpc, options=direct)
    ) as channel:
        try:
            request = health_pb2.HealthCheckRequest()
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=deployment.seconds / 2)
        except grpc.RpcError as error:
            why = error.details() if isinstance(error, grpc.Call) else error
            return problem(f"{deployment.grpc} does not answer: {why}", start)
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        return problem(f"{deployment.grpc} does not serve: its database does not answer", "repair the database first")
    if not encrypted and not is_loopback(host):
        return warning(f"{deployment.grpc} serves without TLS", "use --tls-cert, or a proxy that encrypts")
    return ok(f"{deployment.grpc} serves, {'with' if encrypted else 'without'} TLS")


def certificates(deployment: Deployment) -> Finding:
    """Check how long the certificates of both addresses, and of the file, are valid."""
    found: dict[str, x509.Certificate] = {}
    console_url = urlsplit(deployment.console)
    places = {deployment.grpc: _split(deployment.grpc)} if deployment.grpc else {}
    if console_url.scheme == "https":
        places[deployment.console] = (console_url.hostname or "", console_url.port or 443)
    for name, (host, port) in places.items():
        with suppress(OSError):  # the checks of the addresses report it
            der = _certificate(host, port, deployment.seconds / 4)
            if der is not None:
                found[name] = x509.load_der_x509_certificate(der)
    if deployment.certificate:
        try:
            chain = x509.load_pem_x509_certificates(deployment.certificate.read_bytes())
        except (OSError, ValueError) as error:
            return problem(f"{deployment.certificate} cannot be read: {_why(error)}", "name a PEM file")
        found[str(deployment.certificate)] = chain[0]
    if not found:
        return ok("no address uses TLS here")
    name, first = min(found.items(), key=lambda item: item[1].not_valid_after_utc)
    end = first.not_valid_after_utc
    left = end - datetime.now(UTC)
    if left.total_seconds() < 0:
        return problem(f"the certificate of {name} has expired on {end:%Y-%m-%d}", RENEW)
    text = f"the certificate of {name} is valid for {left.days} more days"
    return warning(text, RENEW) if left.days < SOON_DAYS else ok(text)


def _certificate(host: str, port: int, seconds: float) -> bytes | None:
    """Return the certificate of an address (DER), or None if it does not speak TLS. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only its date is read here; the checks of the addresses verify it.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((host, port), timeout=seconds) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as encrypted:
                return encrypted.getpeercert(binary_form=True)
        except (ssl.SSLError, ConnectionError, TimeoutError):
            return None


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _trust(deployment: Deployment) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(deployment.authorities) if deployment.authorities else None)


def _reason(error: urllib.error.HTTPError) -> str:
    """Return what `/readyz` says is wrong."""
    try:
        content = json.loads(error.read(10_000))
        return ", ".join(f"{name} {text}" for name, text in content.items() if name != "status" and text != "ok")
    except (ValueError, OSError, AttributeError):
        return error.reason


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
