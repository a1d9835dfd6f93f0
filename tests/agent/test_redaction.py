"""Secrets that a trial writes do not leave the machine."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide, Outcome
from trimtab_agent.artifacts import collect
from trimtab_agent.journal import Entry
from trimtab_agent.lease import Lease
from trimtab_agent.log_shipper import PIECE, LogShipper
from trimtab_agent.redaction import LONGEST, Redactor

CREDENTIAL = "a-token-of-the-administrator"
TOKEN = "tra_0123456789abcdefghijABCDEFGHIJ0123456789abcdef"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"
KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{KEY}\n-----END PRIVATE KEY-----\n"
SECRETS = (CREDENTIAL, TOKEN, JWT, KEY)
TEXT = f"""loss=1 of 5
the file says {CREDENTIAL}, and "{TOKEN}"
{PEM}Authorization: Bearer abc.def
value=3.5 at postgresql://me:hidden@db/x
token: {JWT}
"""

redactor = Redactor(lambda: {CREDENTIAL})


def test_secrets_become_asterisks_and_the_rest_stays() -> None:
    hidden = redactor.text(TEXT)
    assert len(hidden) == len(TEXT)
    for secret in (*SECRETS, "abc.def", "me:hidden"):
        assert secret not in hidden
    for kept in ("loss=1 of 5\n", "value=3.5 at postgresql://", "@db/x", "-----BEGIN PRIVATE KEY-----\n", "-----END"):
        assert kept in hidden
    ordinary = (
        "step 1: 0.25 s\nhttp://host:80/path\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\né ✓\n"
    )
    assert redactor.text(ordinary) == ordinary


@pytest.mark.parametrize(
    "text",
    [
        PEM.partition("\n")[2],
        PEM.partition("-----END")[0],
        PEM.replace("BEGIN", "BEGIN RSA").replace("END", "END RSA"),
        PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123\n\n", 1),
        json.dumps({"key": PEM}),
    ],
    ids=["end", "beginning", "rsa", "encrypted", "json"],
)
def test_forms_of_a_private_key(text: str) -> None:
    assert KEY in text
    assert KEY not in redactor.text(text)


@pytest.mark.parametrize(
    "piece",
    [
        "eyJa",
        "tra_",
        "-----BEGIN PRIVATE KEY-----",
        f"{KEY}\n",
        "://a:",
        "Bearer ",
        f"{KEY}\n-----END PRIVATE KEY-----\n",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    started = time.process_time()
    redactor.data(piece.encode() * ((1 << 20) // len(piece)))
    assert time.process_time() - started < 20


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_bytes(b"\0" + CREDENTIAL.encode() + b"\xff://a:b@")
    text, binary = collect(tmp_path, ["*.txt"], most=5, largest=1 << 20, redactor=redactor)
    assert text.data == redactor.data(TEXT.encode())
    assert text.size == len(TEXT)
    assert binary.data == b"\0" + b"*" * len(CREDENTIAL) + b"\xff://a:b@"


class Service:
    """Takes a log as the service does."""

    def __init__(self) -> None:
        self.log = b""

    async def append_log(self, lease: str, offset: int, data: bytes) -> int:
        assert offset <= len(self.log)
        self.log += data[len(self.log) - offset :]
        return len(self.log)


def shipped(folder: Path, *pieces: bytes, restart: bool = False) -> bytes:
    """Return the log that the service has, after it was followed while it grew by these pieces."""
    service: Any = Service()

    async def run() -> None:
        entry = Entry(folder, Lease("lease/1", "study", 1, 1, "basic", "", "main", {}, (), 0))
        shipper = LogShipper(service, entry, redactor)
        for piece in pieces:
            with (folder / "log").open("ab") as file:
                file.write(piece)
            await shipper._send(complete=False)
            if restart:
                shipper = LogShipper(service, entry, redactor)
        await shipper.finish()

    (folder / "log").unlink(missing_ok=True)
    asyncio.run(run())
    return bytes(service.log)


@pytest.mark.parametrize("restart", [False, True])
def test_a_log_that_grows_by_any_pieces(tmp_path: Path, restart: bool) -> None:
    whole = TEXT.encode()
    expected = redactor.data(whole)
    for size in (1, 2, 3, 7, 31, 64):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert shipped(tmp_path, *pieces, restart=restart) == expected


@pytest.mark.parametrize("secret", [TOKEN, PEM, CREDENTIAL])
def test_a_secret_across_the_border_of_two_messages(tmp_path: Path, secret: str) -> None:
    for before in range(PIECE - len(secret), PIECE + 1, 5):
        text = (b"x" * 99 + b"\n") * (before // 100) + b" " * (before % 100) + secret.encode() + b"\nend\n"
        assert shipped(tmp_path, text) == redactor.data(text)


def test_output_without_any_space_is_sent_all_the_same(tmp_path: Path) -> None:
    service = shipped(tmp_path, b"." * (3 * LONGEST), b"." * PIECE)
    assert service == b"." * (3 * LONGEST + PIECE)


CAT = """
name: reader
parameters:
  x: {type: float, min: 0, max: 10, default: 1, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'cp ../../../credential found.txt; cat found.txt; exit 1']}
artifacts: ["*.txt"]
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


def test_a_trial_that_reads_the_credential_publishes_nothing(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    (agent.components / "reader.yaml").write_text(CAT)
    far_side.enrolments.add("tre_once")
    agent.start("--enrol", "tre_once", token_file=False)
    lease = far_side.offer("reader")
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_INFEASIBLE, agent.log
    far_side.wait_for(lambda: "found.txt" in far_side.artifacts.get(lease, ()))
    secret = json.loads((agent.state / "credential").read_text())["secret"]
    told = {
        "log": bytes(far_side.logs[lease]).decode(),
        "reason": settled.reason,
        "artifact": far_side.artifacts[lease]["found.txt"].data.decode(),
    }
    for where, text in told.items():
        assert secret not in text, where
        assert '"secret": "****' in text, where
