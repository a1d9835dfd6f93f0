"""The agent's side of application matching: its socket, decisions, cache and reports."""

import getpass
import os
import re
import socket
import subprocess
import textwrap
import threading
from pathlib import Path

import grpc
import pytest

from tests.agent.conftest import run_agent_command
from tests.agent.far_side import FarSide, refuse
from tests.agent.matching.conftest import POLICY, Matching
from tests.factories.patience import PATIENCE, wait_for
from trimtab_agent._gen import matching_pb2
from trimtab_agent.matching import client, protocol
from trimtab_components.schema import Scalar


def test_settings_reach_the_client(matching: Matching) -> None:
    matching.start()
    answer = matching.ask(name="ant", arg="/home/ann/ant.sh", nodes="2", partition="main", cluster="c1")
    assert answer["$SOLVER_THREADS"] == "8"
    assert answer["$SOLVER_CACHE"] == "on"
    assert "$SOLVER_WORK" not in answer
    assert answer["preload"] == str(matching.library)
    assert answer["comment"] == "trimtab:rec1:0.93"
    (asked,) = matching.far_side.asked
    assert (asked.job.user, asked.job.name, asked.job.program) == (getpass.getuser(), "ant", "job.sh")
    assert (asked.job.nodes, asked.job.partition, asked.job.cluster) == (2, "main", "c1")
    assert asked.job.command_line == "/home/ann/ant.sh"
    assert list(asked.components) == ["solver"]


def test_without_the_option_there_is_no_socket(matching: Matching) -> None:
    matching.agent.start()
    matching.agent.wait_until_ready()
    assert not matching.socket.exists()


def test_an_agent_without_slots_only_matches(matching: Matching) -> None:
    matching.start(POLICY, "--slots", "0")
    assert matching.ask()["$SOLVER_THREADS"] == "8"
    assert matching.far_side.registrations == []
    matching.agent.stop()
    assert not matching.socket.exists()
    given = ["--server", f"127.0.0.1:{matching.far_side.port}", "--components", str(matching.agent.components)]
    done = run_agent_command(["run", *given, "--slots", "0"])
    assert (done.returncode, "it needs --match-socket" in done.stderr) == (2, True)


def test_the_default_is_a_dry_run_that_says_what_it_would_do(matching: Matching) -> None:
    matching.start(POLICY.replace("mode: apply", ""))
    answer = matching.ask(kind="wrap")
    assert set(answer) == {"submission", "note"}
    assert "dry run" in answer["note"]
    wait_for(lambda: "a dry run leaves a job unchanged job=" in matching.agent.log)
    assert 'additions="SOLVER_CACHE=on SOLVER_THREADS=8 SOLVER_MODE=fast LD_PRE' in matching.agent.log
    report(matching, answer)
    considered = next(iter(matching.far_side.reports.values())).considered[0]
    assert considered.decision == matching_pb2.DECISION_DRY_RUN
    assert not next(iter(matching.far_side.reports.values())).confirmed


def test_the_run_times_of_commands_count_where_their_host_is_trusted(matching: Matching) -> None:
    matching.start(POLICY.replace("mode: apply", "mode: apply\n  trust_commands: true"))
    report(matching, matching.ask(kind="wrap"))
    assert next(iter(matching.far_side.reports.values())).confirmed


def report(matching: Matching, answer: dict[str, str], status: str = "0") -> None:
    """Let the job of an answer end after 2.5 seconds."""
    ended = {"submission": answer["submission"], "status": status, "seconds": "2.5"}
    client.talk(str(matching.socket), protocol.ENDED, ended.items(), 30)
    matching.far_side.wait_for(lambda: answer["submission"] in matching.far_side.reports)


def test_a_control_gets_nothing_and_is_reported(matching: Matching) -> None:
    matching.start(POLICY.replace("control_share: 0", "control_share: 1"))
    answer = matching.ask(kind="wrap")
    assert set(answer) == {"submission", "note"}
    report(matching, answer, "3")
    told = matching.far_side.reports[answer["submission"]]
    assert told.considered[0].decision == matching_pb2.DECISION_CONTROL
    assert (told.end, told.seconds, told.job.name) == (matching_pb2.JOB_END_FAILED, 2.5, "job")


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        ("mode: 'off'", {}),
        ("users: [nobody-else]", {}),
        ("partitions: [short]", {"partition": "main"}),
        ("components: {}", {}),
    ],
)
def test_the_policy_keeps_the_service_from_being_asked(matching: Matching, policy: str, given: dict[str, str]) -> None:
    matching.start(
        f"matching: {{mode: apply, timeout: 10, {policy}}}" if "mode" not in policy else f"matching: {{{policy}}}"
    )
    assert matching.ask(**given) == {}
    assert matching.far_side.asked == []


def test_the_user_is_who_the_kernel_says(matching: Matching) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    matching.start()
    folder = matching.folder
    while folder != folder.parent:
        folder.chmod(folder.stat().st_mode | 0o011)
        folder = folder.parent
    program = """
        import socket, sys
        link = socket.socket(socket.AF_UNIX)
        link.connect(sys.argv[1])
        link.sendall(b"trimtab-match 1 ask\\nkind sbatch\\nname x\\nuser root\\nend\\n")
        link.makefile().read()
    """
    command = ["/usr/bin/python3", "-c", textwrap.dedent(program), str(matching.socket)]
    subprocess.run(command, check=True, user="nobody", group="nogroup", extra_groups=[], timeout=PATIENCE)
    assert [one.job.user for one in matching.far_side.asked] == ["nobody"]


def test_another_user_s_submission_cannot_be_reported(matching: Matching, tmp_path: Path) -> None:
    from trimtab_agent.matching.spool import Spool
    from trimtab_agent.submissions import End, Job, Submission

    spool = Spool(tmp_path / "spool")
    spool.put(Submission("a" * 32, 1000, Job("ann", "x", "x", "x", 0.0), (), kind="wrap"))
    spool.ended("a" * 32, 1001, End("completed", 1.0, 0.0))
    spool.submitted("a" * 32, 1001, "12")
    assert spool.finished(9) == []
    assert spool.running() == []
    spool.ended("a" * 32, 1000, End("completed", 1.0, 0.0))
    assert [one.id for one in spool.finished(9)] == ["a" * 32]


def test_the_cache_answers_while_the_service_is_away(matching: Matching) -> None:
    matching.start()
    assert matching.ask()["$SOLVER_THREADS"] == "8"
    matching.far_side.close()
    assert matching.ask()["$SOLVER_THREADS"] == "8"
    assert matching.ask(name="unknown") == {}


def test_a_silent_service_costs_the_policy_s_time(matching: Matching) -> None:
    matching.start(POLICY.replace("timeout: 10", "timeout: 0.3"))
    wait_for(lambda: matching.ask().get("$SOLVER_THREADS") == "8")
    gate = threading.Event()

    def hold(method: str, request: object, context: grpc.ServicerContext) -> None:
        if method == "Match":
            gate.wait(PATIENCE)

    matching.far_side.before = hold
    try:
        # A client gives up after half a second. Here it has more time, so that a busy machine changes nothing.
        assert matching.ask()["$SOLVER_THREADS"] == "8"
        wait_for(lambda: "jobs are matched from the cache" in matching.agent.log)
    finally:
        gate.set()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"present": "SOLVER_THREADS"}, "The job sets SOLVER_THREADS itself."),
        ({"export": "ALL,SOLVER_THREADS=2"}, "The job sets SOLVER_THREADS itself."),
        ({"export": "NONE"}, "--export keeps the environment"),
        ({"export": "HOME,A=1"}, "--export keeps the environment"),
        ({"export": "ALL,LD_PRELOAD=/x.so"}, "LD_PRELOAD itself"),
    ],
)
def test_the_user_s_own_values_win(matching: Matching, given: dict[str, str], reason: str) -> None:
    matching.start()
    answer = matching.ask(kind="wrap", **given)
    assert set(answer) == {"submission", "note"}
    assert reason in answer["note"]
    report(matching, answer)
    considered = next(iter(matching.far_side.reports.values())).considered[0]
    assert considered.decision == matching_pb2.DECISION_REFUSED
    assert reason in considered.reason


def test_a_variable_that_no_value_depends_on_is_left(matching: Matching) -> None:
    matching.start()
    answer = matching.ask(present="SOLVER_CACHE")
    assert answer["$SOLVER_THREADS"] == "8"
    assert "$SOLVER_CACHE" not in answer


@pytest.mark.parametrize(
    ("policy", "params", "reason"),
    [
        (POLICY, {"unroll": True}, "by a command-line flag (parameters.unroll.flag)"),
        (POLICY, {"threads": 100}, "100 is not an integer from 1 to 64"),
        (POLICY, {"unknown": 1}, "has no parameter 'unknown'"),
        (POLICY, {"contiguous": True}, "does not allow the option --contiguous (rule matching.options)"),
        (POLICY.replace("preload: [LIBRARY], ", ""), {}, "the library names a folder of trials ({build})"),
        (POLICY.replace(", omit: [SOLVER_WORK]", ""), {}, "SOLVER_WORK names a folder of trials ({work})"),
        (POLICY + "environment: ['SOLVER_*']", {}, "does not allow the variable LD_PRELOAD (rule environment)"),
    ],
)
def test_a_refusal_says_why(
    matching: Matching, far_side: FarSide, policy: str, params: dict[str, Scalar], reason: str
) -> None:
    far_side.matches.clear()
    far_side.resemble("solver", record="rec1", score=0.93, digest="", **params)
    matching.start(policy)
    answer = matching.ask()
    assert set(answer) == {"submission", "note"}
    assert reason in answer["note"]


def test_another_version_of_the_component_is_refused(matching: Matching, far_side: FarSide) -> None:
    far_side.matches.clear()
    far_side.resemble("solver", digest="0" * 64, threads=4)
    matching.start()
    assert "but the record is of 000000000000" in matching.ask()["note"]


def test_an_allowed_option_of_the_scheduler(matching: Matching, far_side: FarSide) -> None:
    far_side.matches.clear()
    far_side.resemble("solver", contiguous=True)
    matching.start(POLICY + "  options: [contiguous]")
    assert matching.ask()["option"] == "contiguous="
    assert "The job sets --contiguous itself." in matching.ask(option="contiguous")["note"]
    assert "there is no scheduler" in matching.ask(kind="wrap")["note"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"trimtab-match 1 ask\nkind qsub\nend\n", "kind: 'qsub' is not one of"),
        (b"trimtab-match 1 ask\nkind sbatch\nnodes -1\nend\n", "nodes: '-1' is not a number"),
        (b"trimtab-match 1 ended\nsubmission ../x\nend\n", "'../x' is not 32 hexadecimal digits"),
        (b"trimtab-match 1 other\nsubmission " + b"a" * 32 + b"\nend\n", "'other' is not one of"),
        (b"trimtab-match 1 submitted\nsubmission " + b"a" * 32 + b"\njob_id 1;2\nend\n", "job_id: '1;2'"),
        (b"GET / HTTP/1.1\nend\n", "of another protocol"),
    ],
)
def test_a_wrong_request_gets_a_reason(matching: Matching, data: bytes, reason: str) -> None:
    matching.start()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE)
        link.connect(str(matching.socket))
        link.sendall(data)
        assert reason in link.makefile().read()
    assert matching.ask()["$SOLVER_THREADS"] == "8"


def test_silent_endless_and_many_clients_do_not_hurt_others(matching: Matching) -> None:
    matching.start()
    links = []
    for number in range(40):  # more than a user may have
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(matching.socket))
        links.append(link)
        if number == 20:  # the limit leaves space for others in time
            assert matching.ask()["$SOLVER_THREADS"] == "8"
    # The silent connections are closed after some seconds.
    for link in links:
        link.settimeout(PATIENCE)
        assert link.recv(1) == b""
        link.close()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE)
        link.connect(str(matching.socket))
        with pytest.raises(OSError):  # noqa: PT012  the agent closes it at some time
            while True:
                link.sendall(b"x" * 65536)
    assert matching.ask()["$SOLVER_THREADS"] == "8"


def test_reports_survive_a_killed_agent_and_lost_answers(matching: Matching) -> None:
    matching.start()
    answers = [matching.ask(kind="wrap") for _ in range(3)]
    matching.far_side.lose_answers["ReportJobs"] = 2
    matching.far_side.close()
    for answer in answers:
        ended = {"submission": answer["submission"], "status": "0", "seconds": "1"}
        client.talk(str(matching.socket), protocol.ENDED, ended.items(), 30)
        # Only the first report counts.
        client.talk(str(matching.socket), protocol.ENDED, {**ended, "seconds": "9"}.items(), 30)
    matching.agent.kill()
    matching.far_side.open()
    matching.start()
    matching.far_side.wait_for(lambda: len(matching.far_side.reports) == 3)
    assert {one.seconds for one in matching.far_side.reports.values()} == {1.0}
    wait_for(lambda: list((matching.agent.state / "matching").iterdir()) == [])
    assert len(matching.far_side.report_calls) >= 3


def test_reports_that_are_too_large_together_come_one_by_one(matching: Matching) -> None:
    def refuse_many(method: str, request: object, context: grpc.ServicerContext) -> None:
        if isinstance(request, matching_pb2.ReportJobsRequest) and len(request.jobs) > 1:
            refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "message_too_large", "too large")

    matching.start()
    answers = [matching.ask(kind="wrap") for _ in range(3)]
    matching.far_side.close()
    for answer in answers:
        ended = {"submission": answer["submission"], "status": "0", "seconds": "1"}
        client.talk(str(matching.socket), protocol.ENDED, ended.items(), 30)
    matching.far_side.before = refuse_many
    matching.far_side.open()
    assert len(matching.reported(3)) == 3


def test_a_report_that_the_service_refuses_does_not_hold_up_others(matching: Matching) -> None:
    matching.start()
    answers = [matching.ask(kind="wrap") for _ in range(4)]
    bad = answers[1]["submission"]

    def refuse_one(method: str, request: object, context: grpc.ServicerContext) -> None:
        if isinstance(request, matching_pb2.ReportJobsRequest) and any(one.submission == bad for one in request.jobs):
            refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "invalid", "this one is wrong")

    matching.far_side.before = refuse_one
    for answer in answers:
        ended = {"submission": answer["submission"], "status": "0", "seconds": "1"}
        client.talk(str(matching.socket), protocol.ENDED, ended.items(), 30)
    matching.far_side.wait_for(lambda: len(matching.far_side.reports) == 3)
    wait_for(lambda: f"the report of a job is dropped submission={bad} " in matching.agent.log)


def test_the_agent_stays_small(matching: Matching) -> None:
    matching.start()
    for number in range(20):
        matching.ask(name=f"job-{number}")
    assert matching.agent.process
    status = Path(f"/proc/{matching.agent.process.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 60 * 1024


def test_secrets_of_a_command_line_stay_here(matching: Matching) -> None:
    matching.start()
    pairs = [("kind", "sbatch"), ("name", "x"), ("arg", "run"), ("arg", "--password=hunter22"), ("arg", "a b")]
    client.talk(str(matching.socket), protocol.ASK, pairs, 30)
    assert matching.far_side.asked[0].job.command_line == "run '--password=***' 'a b'"


def test_a_socket_that_cannot_be_made(matching: Matching, tmp_path: Path) -> None:
    given = ["--server", f"127.0.0.1:{matching.far_side.port}", "--token-file", str(tmp_path / "token")]
    given += ["--components", str(matching.agent.components), "--state-dir", str(tmp_path / "state")]
    done = run_agent_command(["run", *given, "--match-socket", "/nowhere/match.sock"])
    assert done.returncode == 2
    assert re.search(r"--match-socket /nowhere/match.sock cannot be used: .*No such file", done.stderr)
