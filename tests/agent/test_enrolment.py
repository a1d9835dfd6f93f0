"""An agent with a credential of its own."""

import json
import os
import time
from pathlib import Path

import grpc
import pytest

from service.identity import secret
from tests.agent.conftest import BASIC, AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent.credentials import Enrolled, digest
from trimtab_agent.enrolment import VARIABLE, find

TOKEN = "tre_once"


@pytest.fixture
def enrolled(agent: AgentProcess, far_side: FarSide, programs_start: None) -> AgentProcess:
    """An agent that has enrolled and is at work."""
    far_side.enrolments.add(TOKEN)
    agent.start("--enrol", TOKEN, token_file=False)
    agent.wait_until_ready()
    return agent


def works(agent: AgentProcess, far_side: FarSide) -> None:
    lease = far_side.offer("basic")
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED, agent.log


def credential(agent: AgentProcess) -> str:
    return str(json.loads((agent.state / "credential").read_text())["secret"])


def test_it_enrols_once_and_then_needs_nothing(enrolled: AgentProcess, far_side: FarSide) -> None:
    works(enrolled, far_side)
    kept = credential(enrolled)
    # The form that the service gives out, so that a scanner knows it; only its hash was sent.
    assert secret.kind_of(kept) is secret.Kind.AGENT
    assert far_side.credentials == [digest(kept)] == [secret.digest(kept)]
    assert (enrolled.state / "credential").stat().st_mode & 0o777 == 0o600
    assert kept not in enrolled.log
    # A service manager starts it with the same words again.
    for options in ((), ("--enrol", TOKEN)):
        enrolled.stop()
        enrolled.start(*options, token_file=False)
        enrolled.wait_until_ready()
        works(enrolled, far_side)
    assert far_side.credentials == [digest(kept)]
    # A new token replaces what it has, for example when that was revoked.
    enrolled.stop()
    far_side.credentials.clear()
    far_side.enrolments.add("tre_new")
    enrolled.start("--enrol", "tre_new", token_file=False)
    works(enrolled, far_side)
    assert credential(enrolled) != kept


def test_an_answer_to_the_enrolment_that_is_lost_loses_nothing(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    far_side.enrolments.add(TOKEN)
    far_side.lose_answers["Enrol"] = 10**6
    agent.start("--enrol", TOKEN, token_file=False)
    far_side.wait_for(lambda: far_side.credentials)
    agent.kill()
    assert not (agent.state / "credential").exists()
    far_side.lose_answers.clear()
    agent.start("--enrol", TOKEN, token_file=False)
    works(agent, far_side)
    assert len(far_side.credentials) == 1


def test_it_renews_by_itself_and_survives_lost_answers(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    far_side.enrolments.add(TOKEN)
    far_side.renew_after = 0.2
    far_side.lose_answers["RenewCredential"] = 2
    agent.start("--enrol", TOKEN, token_file=False)
    far_side.wait_for(lambda: len(far_side.credentials) >= 4)
    # Each answer was for a credential that it then used: with the first ones ended it goes on.
    wait_for(lambda: digest(credential(agent)) in far_side.credentials[2:])
    del far_side.credentials[:2]
    works(agent, far_side)
    # Whenever it is killed, it comes back with what it has.
    for _ in range(3):
        agent.kill()
        agent.start(token_file=False)
        agent.wait_until_ready()
        works(agent, far_side)


def test_trials_continue_while_the_renewal_of_credentials_fails(enrolled: AgentProcess, far_side: FarSide) -> None:
    enrolled.stop()
    content = json.loads((enrolled.state / "credential").read_text())
    (enrolled.state / "credential").write_text(json.dumps({**content, "renew_after": 0}))

    def no_renewal(method: str, request: object, context: grpc.ServicerContext) -> None:
        if method == "RenewCredential":
            context.abort(grpc.StatusCode.INTERNAL, "not today")

    far_side.before = no_renewal
    enrolled.start(token_file=False)
    wait_for(lambda: "the credential is not renewed, trying again tries=1 error=" in enrolled.log)
    works(enrolled, far_side)


@pytest.mark.parametrize("token", [TOKEN, "tre_used"])
def test_a_malformed_token_is_reported_at_the_start(
    agent: AgentProcess, far_side: FarSide, token: str, programs_start: None
) -> None:
    agent.start("--enrol", token, token_file=False)
    assert agent.process
    assert agent.process.wait(PATIENCE) == 1
    assert "the token was used (invalid_enrolment)" in agent.log
    assert "Traceback" not in agent.log


def test_a_missing_token_or_credential_gives_an_error_with_instructions(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "c.yaml").write_text(BASIC)
    options = ["--server", "127.0.0.1:1", "--components", str(tmp_path / "c.yaml"), "--state-dir", str(tmp_path)]
    done = run_agent_command(["run", *options])
    assert (done.returncode, "trimtab agent enrol" in done.stderr) == (2, True), done.stderr
    done = run_agent_command(["run", *options, "--enrol", "x", "--token-file", "y"])
    assert (done.returncode, "give one of them" in done.stderr) == (2, True)
    (tmp_path / "credential").write_text("{")
    done = run_agent_command(["run", *options])
    assert (done.returncode, "remove it and enrol the agent again" in done.stderr) == (1, True), done.stderr


def test_when_a_renewal_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Enrolled(tmp_path)
    first = mine.draw("token")
    assert mine.draw("token") == first
    mine.confirm(1000.0)
    assert digest(mine.token()) == first
    assert mine.came_with("token")
    assert 0 < mine.due() <= 60
    now = time.time()
    for jump in (1001, -5000):
        monkeypatch.setattr("trimtab_agent.credentials.time.time", lambda jump=jump: now + jump)
        assert Enrolled(tmp_path).due() == 0


def command_line(agent: AgentProcess) -> str:
    assert agent.process is not None
    return Path(f"/proc/{agent.process.pid}/cmdline").read_text()


@pytest.mark.parametrize("form", ["--enrol {}", "--enrol={}"])
def test_a_token_in_the_arguments_disappears_from_them(
    agent: AgentProcess, far_side: FarSide, form: str, programs_start: None
) -> None:
    far_side.enrolments.add(TOKEN)
    agent.start(*form.format(TOKEN).split(), token_file=False)
    agent.wait_until_ready()
    assert TOKEN not in command_line(agent)
    assert "--components" in command_line(agent)
    assert "could see the token of --enrol" in agent.log
    works(agent, far_side)


def test_a_token_in_a_file_may_be_deleted_after_its_use(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    far_side.enrolments.add(TOKEN)
    file = agent.folder / "enrolment"
    file.touch(mode=0o600)
    file.write_text(f"{TOKEN}\n")
    agent.start("--enrol-file", str(file), token_file=False)
    agent.wait_until_ready()
    assert TOKEN not in command_line(agent)
    assert "WARNING other users" not in agent.log
    agent.stop()
    file.unlink()
    agent.start("--enrol-file", str(file), token_file=False)
    works(agent, far_side)


def test_a_token_in_the_environment_does_not_reach_trials(
    agent: AgentProcess, far_side: FarSide, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    far_side.enrolments.add(TOKEN)
    monkeypatch.setenv(VARIABLE, TOKEN)
    agent.start(token_file=False)
    agent.wait_until_ready()
    assert VARIABLE not in agent.log
    works(agent, far_side)
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert find(None, None) == TOKEN
    assert VARIABLE not in os.environ


def test_a_file_of_a_token_that_cannot_be_used_gives_an_error(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "c.yaml").write_text(BASIC)
    options = ["--server", "127.0.0.1:1", "--components", str(tmp_path / "c.yaml"), "--state-dir", str(tmp_path)]
    for more, expected in (
        (["--enrol-file", str(tmp_path)], "cannot be read"),
        (["--enrol-file", "x", "--enrol", "-"], "give one of them"),
        (["--enrol-file", str(tmp_path / "missing")], "trimtab agent enrol"),
        (["--enrol", "x" * 2000], "at most 1000 characters"),
    ):
        done = run_agent_command(["run", *options, *more])
        assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
