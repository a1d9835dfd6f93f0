"""A component that was written in the service, fetched and installed by a cluster's administrator."""

import hashlib
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab_agent._gen import agent_pb2

TEXT = """\
name: pulled
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'echo "value=$0"']}
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""
OTHER = "name: other\napplications: {main: {command: ['true']}}\n"
Pull = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[[str, int], dict[str, Any]]


@pytest.fixture
def rest(embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {embedded_service.token}"}
    with httpx.Client(base_url=f"{embedded_service.http_url}/api/v1", headers=headers, timeout=PATIENCE) as client:
        yield client
        client.delete("/components/pulled/files")


@pytest.fixture
def write(rest: httpx.Client) -> Write:
    def send(text: str, after: int) -> dict[str, Any]:
        answer = rest.post("/components", json={"text": text, "after": after})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    return send


@pytest.fixture
def agent(tmp_path: Path, embedded_service: EmbeddedService) -> Iterator[AgentProcess]:
    port = int(embedded_service.grpc_address.rpartition(":")[2])
    made = AgentProcess(tmp_path, port, embedded_service.token)
    made.components.mkdir()
    (made.components / "other.yaml").write_text(OTHER)
    yield made
    made.clear_away()


@pytest.fixture
def pull(agent: AgentProcess) -> Pull:
    def run(*options: str, port: int = agent.port, **how: Any) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "trimtab_agent.main", "pull", "pulled", "--server", f"127.0.0.1:{port}"]
        command += ["--token-file", str(agent.folder / "token"), "--components", str(agent.components)]
        how = {"stdin": subprocess.DEVNULL, **how}
        return subprocess.run(
            [*command, "--state-dir", str(agent.state), *options],
            capture_output=True, text=True, timeout=PATIENCE, check=False, **how,
        )  # fmt: skip

    return run


def test_it_is_shown_and_installed_with_consent_alone(agent: AgentProcess, pull: Pull, write: Write) -> None:
    target = agent.components / "pulled/component.yaml"
    absent = pull("--yes")
    assert absent.returncode == 1
    assert "component_file_not_found" in absent.stderr
    written = write(TEXT, 0)
    unasked = pull()
    assert unasked.returncode == 2
    assert TEXT in unasked.stdout
    assert "--yes" in unasked.stderr
    assert not target.exists()
    for answer, code in (("n\n", 1), ("y\n", 0)):
        assert not target.exists()
        here, there = pty.openpty()
        os.write(here, answer.encode())
        assert pull(stdin=there).returncode == code
        os.close(here)
        os.close(there)
    assert target.read_text() == TEXT
    assert [path.name for path in target.parent.iterdir()] == ["component.yaml"]
    again = pull()
    assert again.returncode == 0
    assert "already has this content" in again.stdout
    # The command names what differs in the next version. A pinned digest refuses that version.
    write(TEXT.replace("max: 10", "max: 20"), 1)
    pinned = pull("--yes", "--digest", written["sha256"])
    assert (pinned.returncode, target.read_text()) == (0, TEXT)
    assert pull("--yes", "--digest", hashlib.sha256(b"").hexdigest()).returncode == 1
    newest = pull("--yes")
    assert newest.returncode == 0
    assert "+  x: {type: float, min: 0, max: 20" in newest.stdout
    assert "max: 20" in target.read_text()


def test_a_component_that_cannot_be_loaded_is_not_installed(agent: AgentProcess, pull: Pull, write: Write) -> None:
    old = agent.components / "mine.yaml"
    old.write_text(TEXT)
    write(TEXT + "templates: [{source: conf.in, target: conf}]\n", 0)
    refused = pull("--yes")
    assert refused.returncode == 2
    assert "templates[0].source: 'conf.in' is not a file" in refused.stderr
    assert old.read_text() == TEXT
    (agent.components / "conf.in").write_text("x = ${x}\n")
    assert pull("--yes").returncode == 0
    # In the file that had this component before.
    assert "conf.in" in old.read_text()
    assert sorted(path.name for path in agent.components.iterdir()) == ["conf.in", "mine.yaml", "other.yaml"]


def test_a_program_of_the_text_runs_after_consent_alone(agent: AgentProcess, pull: Pull, write: Write) -> None:
    mark, program = agent.folder / "ran", agent.folder / "list.sh"
    program.write_text(f"touch {mark}; echo '{{\"parameters\": {{}}}}'\n")
    write(TEXT + f"parameters_from: {{command: [sh, {program}]}}\n", 0)
    assert pull().returncode == 2
    assert not mark.exists()
    done = pull("--yes")
    assert done.returncode == 0, done.stderr
    assert mark.exists()


def test_a_running_agent_offers_it(agent: AgentProcess, pull: Pull, write: Write, rest: httpx.Client) -> None:
    agent.start("--name", "puller")
    agent.wait_until_ready()
    written = write(TEXT, 0)

    def offering() -> list[str]:
        (file,) = rest.get("/components/pulled").json()["files"]
        return [one["name"] for one in file["agents"]]

    assert offering() == []
    assert pull("--yes", "--digest", written["sha256"]).returncode == 0
    wait_for(lambda: offering() == ["puller"])
    # A file with a fault changes nothing.
    (agent.components / "other.yaml").write_text("name: [")
    wait_for(lambda: "the changed component files are not used" in agent.log)
    assert offering() == ["puller"]
    (agent.components / "other.yaml").unlink()
    wait_for(lambda: "component files have changed components=pulled\n" in agent.log)
    agent.stop()


def test_a_service_that_is_not_to_be_trusted(agent: AgentProcess, pull: Pull, far_side: FarSide) -> None:
    def send(text: str, name: str = "pulled", digest: str = "") -> "subprocess.CompletedProcess[str]":
        digest = digest or hashlib.sha256(text.encode()).hexdigest()
        far_side.file = agent_pb2.GetComponentFileResponse(name=name, number=1, text=text, digest=digest)
        return pull("--yes", "--digest", digest, port=far_side.port)

    for done in (
        send(TEXT, digest="ab" * 32),
        send(TEXT, name="other"),
        send(TEXT.replace("pulled", "../../pulled")),
        send(TEXT.replace("pulled", "other")),
        # What would hide a line from who reads it in a terminal.
        send(TEXT + "# \x1b[2K\n"),
        send("[" * 60_000),
    ):
        assert done.returncode == 2, done.stdout
        assert not done.stdout
    shown = send(TEXT + "# \u202e harmless\n")
    assert (shown.returncode, "\u202e" in shown.stdout, "\\u202e harmless" in shown.stdout) == (0, False, True)
    assert sorted(path.name for path in agent.components.iterdir()) == ["other.yaml", "pulled"]
