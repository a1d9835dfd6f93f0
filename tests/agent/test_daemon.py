"""The daemon against a real gRPC server with a far side of our own: the ordinary course of things."""

import os
import shutil
import time
from pathlib import Path

import grpc
import pytest

from tests.agent.conftest import BASIC, AgentProcess, processes_of, run_agent_command
from tests.agent.far_side import FarSide, Outcome, refuse
from tests.factories.patience import PATIENCE, wait_for


def test_the_agent_registers_with_its_resources(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start("--slots", "3", "--label", "partition=short")
    far_side.wait_for(lambda: far_side.registrations)
    request = far_side.registrations[0]
    assert (request.name, request.slots, dict(request.labels)) == ("tested", 3, {"partition": "short"})
    (component,) = request.components
    assert (component.name, len(component.digest)) == ("basic", 64)
    wait_for(lambda: "ready agent=tested slots=3 components=basic" in agent.log)
    agent.kill()
    agent.start()
    far_side.wait_for(lambda: len(far_side.registrations) == 2)
    again = far_side.registrations[1]
    assert again.agent_id == request.agent_id
    assert again.session_id != request.session_id


def test_trial_with_its_log(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", metrics=("value",), x=2.5)
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled
    assert settled.metrics["value"] == 2.5
    assert settled.metrics["seconds"] > 0
    assert settled.elapsed.ToNanoseconds() > 0
    far_side.wait_for(lambda: b"value=2.5" in far_side.logs.get(lease, b""))
    far_side.wait_for(lambda: far_side.started.get(lease))
    wait_for(lambda: not list((agent.state / "leases").iterdir()))


def test_the_command_that_ran_is_reported(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="leaving", x=0.5)
    far_side.wait_for(lambda: lease in far_side.shown)
    shown = far_side.shown[lease]
    (command,) = shown.commands
    assert (command.step, command.argv[:2], command.argv[3:]) == ("command", ["sh", "-c"], ["0.5", "0.5"])
    assert dict(command.environment) == {"LEVEL": "0.5", "MY_TOKEN": "***"}
    assert (shown.host, shown.script) == (os.uname().nodename, "")
    assert shown.folder.startswith(str(agent.state / "leases"))
    assert far_side.runs[lease] == [1]


def test_a_dry_run_shows_the_same_commands_that_a_trial_runs(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    """Save for the lease's name; where answers are lost it is answered again, and it runs nothing."""
    agent.start("--label", "zone=a")
    far_side.wait_for(lambda: far_side.heartbeats)
    far_side.lose_answers["AnswerDryRun"] = 1
    asked = far_side.ask(1, "basic", {"x": 0.5}, {"x": 11.0}, {"y": 1}, application="leaving")
    far_side.wait_for(lambda: asked in far_side.answers)
    found, too_large, unknown = far_side.answers[asked][0].trials
    assert "'x': 11.0 is not a number from 0 to 10" in too_large.refusal
    assert "no parameter 'y'" in unknown.refusal
    assert not any(one.HasField("invocation") for one in (too_large, unknown))
    assert found.refusal == ""
    assert not list(agent.state.rglob("result.txt"))
    assert list((agent.state / "trash").iterdir()) == []
    lease = far_side.offer("basic", application="leaving", x=0.5)
    far_side.wait_for(lambda: lease in far_side.shown)
    shown = far_side.shown[lease]
    folder = str(agent.state / "leases" / "lease-...")
    assert found.invocation.folder == f"{folder}/work"
    found.invocation.folder = shown.folder
    assert found.invocation == shown
    # No further request: a heartbeat that crossed the answer came long before the trial.
    answered = len(far_side.answers[asked])
    time.sleep(0.5)
    assert len(far_side.answers[asked]) == answered


def refuse_artifacts(method: str, request: object, context: grpc.ServicerContext) -> None:
    if method == "PutArtifact":
        context.abort(grpc.StatusCode.UNAVAILABLE, "away")


def test_artifacts_are_sent_after_the_trial_is_settled(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, programs_start: None
) -> None:
    """Also by the agent's next process; and an answer that is lost changes nothing."""
    (tmp_path / "policy").write_text("limits: {artifact_kib: 1}")
    (tmp_path / "policy").chmod(0o600)
    far_side.before = refuse_artifacts
    agent.start("--policy", str(tmp_path / "policy"))
    lease = far_side.offer("basic", application="leaving", x=0.0)
    far_side.outcome(lease)
    time.sleep(0.3)
    agent.kill()
    assert lease not in far_side.artifacts
    far_side.before = lambda method, request, context: None
    far_side.lose_answers["PutArtifact"] = 1
    agent.start("--policy", str(tmp_path / "policy"))
    far_side.wait_for(lambda: len(far_side.artifacts.get(lease, ())) == 2)
    sent = far_side.artifacts[lease]
    assert (sent["result.txt"].data, sent["result.txt"].left_out) == (b"got 0.0\n", "")
    assert (sent["big.bin"].data, sent["big.bin"].size) == (b"", 2000)
    assert "larger than 1 KiB" in sent["big.bin"].left_out
    wait_for(lambda: not list((agent.state / "leases").iterdir()))
    assert far_side.artifact_calls == 3


def test_a_policy_can_hide_commands_and_refuse_dry_runs(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, programs_start: None
) -> None:
    (tmp_path / "policy").write_text("{show_commands: false, limits: {artifacts: 0}}")
    (tmp_path / "policy").chmod(0o600)
    agent.start("--policy", str(tmp_path / "policy"))
    lease = far_side.offer("basic", application="leaving", x=0.0)
    far_side.outcome(lease)
    far_side.wait_for(lambda: lease in far_side.shown)
    assert not far_side.shown[lease].commands
    wait_for(lambda: not list((agent.state / "leases").iterdir()))
    assert bytes(far_side.logs[lease]).startswith(b"$ [command]\n")
    assert lease not in far_side.artifacts
    asked = far_side.ask(1, "basic", {"x": 0.5})
    far_side.wait_for(lambda: asked in far_side.answers)
    assert "(rule show_commands)" in far_side.answers[asked][0].trials[0].refusal
    policy = dict(far_side.registrations[0].policy)
    assert policy == {"show_commands": "none", "limits.artifacts": "none"}


@pytest.mark.parametrize(
    ("offer", "outcome", "words"),
    [
        ({"application": "bad"}, Outcome.OUTCOME_INFEASIBLE, "exit code 3\nfirst\nbroken"),
        ({"x": 11.0}, Outcome.OUTCOME_INFEASIBLE, "'x': 11.0 is not a number from 0 to 10"),
        ({"application": "long", "timeout": 0.3}, Outcome.OUTCOME_INFEASIBLE, "did not end within 0.3 s"),
        ({"y": 1}, Outcome.OUTCOME_FAILED, "no parameter 'y'"),
        (
            {"application": "none"},
            Outcome.OUTCOME_FAILED,
            "no application 'none'; it has main, slow, long,",
        ),
        ({"component": "other"}, Outcome.OUTCOME_FAILED, "no component 'other'; it has basic"),
        ({"digest": "0" * 64}, Outcome.OUTCOME_FAILED, "the study was made for 000000000000"),
        ({"metrics": ("power",)}, Outcome.OUTCOME_FAILED, "no metric 'power'; it has value, seconds"),
    ],
)
def test_trials_that_do_not_work(
    agent: AgentProcess, far_side: FarSide, offer: dict[str, object], outcome: int, words: str, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer(**{"component": "basic", **offer})  # type: ignore[arg-type]
    settled = far_side.outcome(lease)
    assert settled.outcome == outcome
    assert words in settled.reason
    # and the agent goes on
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED


def test_trials_run_in_all_slots_at_the_same_time(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start("--slots", "2")
    leases = [far_side.offer("basic", application="gated") for _ in range(3)]
    far_side.wait_for(lambda: len(far_side.granted) == 2)
    time.sleep(0.5)
    assert len(far_side.granted) == 2
    (agent.folder / "gate").touch()
    for lease in leases:
        assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED


def test_cancel_ends_the_trial_and_frees_its_slot(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="long")
    far_side.wait_for(lambda: far_side.started.get(lease))
    far_side.to_cancel[lease] = "pruned"
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_CANCELLED, "pruned")
    assert trials_of(agent) == []
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED


def test_measurements_are_reported_before_the_result(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="telling", x=0.0)
    far_side.lose_answers["ReportMeasurement"] = 2
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED
    assert far_side.measured[lease] == {step: {"loss": step} for step in (1, 2, 3, 4)}


def test_a_trial_is_pruned_by_its_measurements(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="telling", x=10.0)
    far_side.to_prune.add(lease)
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.node) == (Outcome.OUTCOME_CANCELLED, os.uname().nodename)
    assert far_side.measured[lease][3] == {"loss": 3}
    assert trials_of(agent) == []


EXCLUSIVE = (True, False, ())


def test_an_exclusive_trial_runs_alone(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    """It waits for those before it, and those after it wait; the service hears why."""
    agent.start("--slots", "4")
    before = far_side.offer("basic", application="gated")
    far_side.wait_for(lambda: far_side.started.get(before))
    alone = far_side.offer("basic", application="long", placed=EXCLUSIVE)
    far_side.wait_for(lambda: "can have the agent's machine for itself" in far_side.waiting.get(alone, ""))
    assert before not in far_side.settled
    after = far_side.offer("basic")
    (agent.folder / "gate").touch()
    far_side.outcome(before)
    far_side.wait_for(lambda: far_side.started.get(alone))
    time.sleep(0.5)
    # while it is alone, nothing more is taken on that another agent could run at once
    assert after not in {**far_side.granted, **far_side.settled}
    far_side.to_cancel[alone] = "enough"
    assert far_side.outcome(alone).outcome == Outcome.OUTCOME_CANCELLED
    assert far_side.outcome(after).outcome == Outcome.OUTCOME_COMPLETED


def test_trials_that_wait_for_an_exclusive_one(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    """One is cancelled before its turn; the agent is killed and started again; SIGTERM gives all back."""
    first = far_side.offer("basic", application="long")
    second, third = (far_side.offer("basic", application="long", placed=EXCLUSIVE) for _ in range(2))
    agent.start("--slots", "3")
    far_side.wait_for(lambda: far_side.started.get(first))
    far_side.wait_for(lambda: second in far_side.waiting)
    far_side.to_cancel[second] = "enough"
    assert far_side.outcome(second).outcome == Outcome.OUTCOME_CANCELLED
    far_side.wait_for(lambda: third in far_side.waiting)
    agent.kill()
    far_side.waiting.clear()
    agent.start("--slots", "3")
    agent.wait_until_ready()
    far_side.wait_for(lambda: third in far_side.waiting)
    assert {first, second, third} & set(far_side.settled) == {second}
    agent.stop()
    assert {far_side.settled[lease].outcome for lease in (first, third)} == {Outcome.OUTCOME_RELEASED}
    assert trials_of(agent) == []


def test_exclusive_trials_are_left_to_other_agents(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    """With free slots and one lease after the other on offer, none is taken to wait for the first."""
    leases = [far_side.offer("basic", application="gated", placed=EXCLUSIVE) for _ in range(3)]
    agent.start("--slots", "4")
    far_side.wait_for(lambda: far_side.started.get(leases[0]))
    assert list(far_side.granted) == leases[:1]
    (agent.folder / "gate").touch()
    for lease in leases:
        assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED


def test_the_heartbeat_reports_how_long_a_trial_has_been_running(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="long")
    far_side.wait_for(lambda: far_side.elapsed.get(lease, 0.0) > 0.5)
    far_side.to_cancel[lease] = "it has run for too long"
    settled = far_side.outcome(lease)
    assert settled.elapsed.ToNanoseconds() / 1e9 >= far_side.elapsed[lease] - 0.01


def test_an_agent_without_leases_sends_half_as_many_heartbeats(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    far_side.wait_for(lambda: far_side.heartbeats)
    far_side.offer("basic", application="long")
    far_side.wait_for(lambda: any(leases for leases, _ in far_side.heartbeats))
    assert set(far_side.heartbeats) == {(0, 2 * far_side.heartbeat), (1, far_side.heartbeat)}


def test_lost_lease_is_ended_and_not_reported(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="long")
    far_side.wait_for(lambda: far_side.started.get(lease))
    with far_side.changed:
        far_side.lost.add(lease)
        del far_side.granted[lease]
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED
    assert lease not in [request.lease for request in far_side.settlements]
    assert trials_of(agent) == []


def trials_of(agent: AgentProcess) -> list[int]:
    """Processes under the agent other than itself and its idle supervisors."""
    marked = []
    for pid in processes_of(agent.state):
        try:
            if b"TRIMTAB_JOB=" in Path(f"/proc/{pid}/environ").read_bytes():
                marked.append(pid)
        except OSError:
            continue
    return marked


def test_sigterm_gives_running_trials_back_and_leaves_no_process(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start("--slots", "2")
    leases = [far_side.offer("basic", application="long") for _ in range(2)]
    far_side.wait_for(lambda: all(far_side.started.get(lease) for lease in leases))
    agent.stop()
    assert processes_of(agent.state) == []
    for lease in leases:
        assert far_side.settled[lease].outcome == Outcome.OUTCOME_RELEASED
    assert list((agent.state / "leases").iterdir()) == []


def test_sigterm_while_it_is_idle_or_the_service_is_away(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    agent.wait_until_ready()
    agent.stop()
    far_side.close()
    agent.start()
    wait_for(lambda: "trying again" in agent.log)
    agent.stop()


def test_a_grant_that_the_stopping_agent_never_saw_is_given_back(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    far_side.wait_for(lambda: far_side.registrations)
    far_side.lose_answers["AcquireLeases"] = 1000
    lease = far_side.offer("basic")
    far_side.wait_for(lambda: lease in far_side.granted)
    far_side.lose_answers.clear()
    agent.stop()
    # either it learned of the lease at the end, or it had already run the trial
    assert far_side.settled[lease].outcome in (Outcome.OUTCOME_RELEASED, Outcome.OUTCOME_COMPLETED)


def test_a_wrong_token_is_reported_at_the_start(tmp_path: Path, far_side: FarSide, programs_start: None) -> None:
    wrong = AgentProcess(tmp_path, far_side.port, token="wrong")
    wrong.components.mkdir()
    (wrong.components / "basic.yaml").write_text(BASIC)
    wrong.start()
    assert wrong.process
    assert wrong.process.wait(PATIENCE) == 1
    assert "the token is not known (bad_token)" in wrong.log


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--server", "nowhere"], "--server 'nowhere' is not of the form HOST:PORT"),
        (["--token-file", "/no/such/file"], "--token-file /no/such/file cannot be read"),
        (["--components", "/no/such/folder"], "--components /no/such/folder does not exist"),
        (["--label", "x"], "--label 'x' is not of the form KEY=VALUE"),
        (["--slots", "-1"], "-1 is below the minimum 0"),
        (["--slots", "0"], "--slots 0 runs no trials, so it needs --match-socket"),
        (["--state-dir", "/proc/no"], "--state-dir"),
    ],
)
def test_wrong_options(tmp_path: Path, change: list[str], words: str, programs_start: None) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "c.yaml").write_text(BASIC)
    options = ["--server", "127.0.0.1:1", "--token-file", str(tmp_path / "token"), "--components", str(tmp_path)]
    done = run_agent_command(["run", *options, "--state-dir", str(tmp_path / "state"), *change])
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_two_agents_with_one_state(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    far_side.wait_for(lambda: far_side.registrations)
    options = ["--server", f"127.0.0.1:{far_side.port}", "--token-file", str(agent.folder / "token")]
    done = run_agent_command(["run", *options, "--components", str(agent.components), "--state-dir", str(agent.state)])
    assert done.returncode == 1
    assert "another agent uses" in done.stderr


def test_two_agents_with_one_identity(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, programs_start: None
) -> None:
    """With a copy of the state directory: on this machine the second ends at once."""
    agent.start()
    lease = far_side.offer("basic", application="gated")
    far_side.wait_for(lambda: far_side.started.get(lease))
    # what is being written has another name until it is whole
    shutil.copytree(agent.state, tmp_path / "copy", ignore=shutil.ignore_patterns("alive", "*.tmp"))
    options = ["--server", f"127.0.0.1:{far_side.port}", "--token-file", str(agent.folder / "token")]
    options += ["--components", str(agent.components), "--state-dir", str(tmp_path / "copy")]
    done = run_agent_command(["run", *options])
    assert done.returncode == 1
    assert "another agent uses the identity in" in done.stderr
    (agent.folder / "gate").touch()
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED
    assert len(far_side.registrations) == 1
    assert len(far_side.settlements) == 1


def test_refused_while_it_works_elsewhere(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    """The service says so; what it says may be of this agent's own past, so that it is asked again."""
    refusals = [1]

    def elsewhere(method: str, request: object, context: grpc.ServicerContext) -> None:
        if method == "Register" and refusals:
            refusals.pop()
            refuse(
                context, grpc.StatusCode.FAILED_PRECONDITION, "agent_online_elsewhere", "it works on another machine"
            )

    far_side.before = elsewhere
    agent.start()
    error = "Register: it works on another machine (agent_online_elsewhere)"
    wait_for(lambda: f'the agent is active elsewhere, trying again seconds=60 error="{error}"' in agent.log)
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED
    place, _, process = far_side.registrations[0].session_id.partition(":")
    assert len(place) == 16
    assert len(process) == 32


def test_unknown_agent_registers_again(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    far_side.wait_for(lambda: len(far_side.heartbeats) > 1)
    far_side.known_sessions.clear()
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED
    assert len(far_side.registrations) >= 2


def test_token_is_read_again_when_it_is_refused(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    far_side.wait_for(lambda: far_side.registrations)
    tokens = {"old": True}

    def only_new(method: str, request: object, context: grpc.ServicerContext) -> None:
        if tokens["old"]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "expired")

    far_side.before = only_new
    lease = far_side.offer("basic")
    wait_for(lambda: "expired" in agent.log)
    tokens["old"] = False
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED


def test_a_report_that_the_service_finds_wrong_becomes_a_failure(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    def refuse_completed(method: str, request: object, context: grpc.ServicerContext) -> None:
        if method == "SettleLease" and request.outcome == Outcome.OUTCOME_COMPLETED:  # type: ignore[attr-defined]
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "metrics.watts is missing")

    far_side.before = refuse_completed
    agent.start()
    settled = far_side.outcome(far_side.offer("basic"))
    assert settled.outcome == Outcome.OUTCOME_FAILED
    assert "metrics.watts is missing" in settled.reason


def test_memory_and_start(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    far_side.outcome(far_side.offer("basic"))
    assert agent.process
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident < 60 * 1024
