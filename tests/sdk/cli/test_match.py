"""`trimtab match` against a real service."""

import json
from collections.abc import Iterator

import grpc
import pytest

import trimtab
from service._gen.agent_pb2_grpc import AgentServiceStub
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import WithToken
from tests.factories.service import EmbeddedService
from tests.factories.tuned import ARGV, tune
from tests.sdk.cli.shell import Shell
from trimtab.errors import InvalidInput, NotFound

JOB = ["--user", "ada", "--name", "angry_ant", "--cluster-nodes", "8"]


@pytest.fixture
def study(embedded_service: EmbeddedService, component: str) -> Iterator[str]:
    """A study with a proven gain of `component`."""
    with grpc.insecure_channel(embedded_service.grpc_address) as channel:
        calls = grpc.intercept_channel(channel, WithToken(embedded_service.token))
        yield tune(TuningServiceStub(calls), AgentServiceStub(calls), component, user="ada", name="ant")


def test_a_job_is_matched_and_the_score_explained(shell: Shell, study: str, component: str) -> None:
    shown = shell.succeed("match", *JOB, "--component", component, "--", *ARGV, "--verbose")
    assert f"{component} small, by study {study}" in shown
    assert "Match: The score" in shown
    for field in ("user", "name", "program", "path", "options", "nodes"):
        assert f"\n {field} " in shown, field
    assert "Tuned job: ant of ada on 1 nodes: /home/ada/bin/ant --grid 64" in " ".join(shown.split())
    [match] = json.loads(shell.succeed("match", *JOB, "--component", component, "--json", *ARGV, "--verbose"))
    assert match["accepted"]
    assert match["score"] == pytest.approx(sum(part["weight"] * part["similarity"] for part in match["parts"]))
    assert match["record"]["params"]["x"] > 0.5
    similarities = {part["field"]: part["similarity"] for part in match["parts"]}
    assert (similarities["user"], similarities["program"], similarities["path"]) == (1, 1, pytest.approx(1))
    # Options of the command are its own, also without the two hyphens.
    assert 0 < similarities["options"] < 1
    far = shell.succeed("match", "--user", "eve", "--component", component, "--", "/opt/sonar")
    assert "No match: The score" in far


def test_records_are_listed_withdrawn_and_restored(shell: Shell, study: str, component: str) -> None:
    [record] = json.loads(shell.succeed("match", "records", "--study", study, "--json"))
    assert (record["state"], record["component"], record["feedback"]["applied"]) == ("ACTIVE", component, 0)
    listed = shell.succeed("match", "records", "--component", component)
    assert record["id"] in listed
    assert "active" in listed
    withdrawn = shell.run("match", "withdraw", record["id"], "--reason", "It is old.")
    assert (withdrawn.returncode, withdrawn.stderr) == (0, f"Record {record['id']} is withdrawn: It is old.\n")
    assert "withdrawn" in shell.succeed("match", "records", "--study", study, "--state", "WITHDRAWN")
    match = shell.run("match", "--component", component, "--", *ARGV)
    assert "No record can match the job" in match.stderr
    assert "administrator has restored it" in shell.run("match", "restore", record["id"]).stderr
    assert "[record_not_found]" in shell.fail("match", "withdraw", "0")
    assert "no such record" in shell.run("match", "records", "--study", "none").stderr
    assert "No agent has reported" in shell.run("match", "jobs", "--record", record["id"]).stderr


def test_settings_are_shown_and_changed(shell: Shell, name: str) -> None:
    assert "Threshold: 0.77" in shell.succeed("match", "settings", "--cluster", name)
    changed = ("--threshold", "0.9", "--weight", "user=3", "--weight", "nodes=0", "--night", "20-7")
    after = json.loads(shell.succeed("match", "settings", "--cluster", name, *changed, "--json"))
    assert (after["threshold"], after["weights"]["user"], after["weights"]["nodes"]) == (0.9, 3, 0)
    assert (after["night_from"], after["night_until"]) == (20, 7)
    assert after == json.loads(shell.succeed("match", "settings", "--cluster", name, "--json"))
    assert "FIELD=NUMBER" in shell.fail("match", "settings", "--weight", "user")
    assert "two hours" in shell.fail("match", "settings", "--night", "late")
    assert "weights.colour" in shell.fail("match", "settings", "--cluster", name, "--weight", "colour=1")


def test_the_sdk_matches_and_changes_records(client: trimtab.Client, study: str, component: str) -> None:
    job = trimtab.Job(user="ada", name="ant", program="ant", command_line=" ".join(ARGV), cluster_nodes=8)
    (match,) = client.matching.match(job, components=[component])
    assert (match.record.study, match.record.job.nodes, match.record.feedback) == (study, 1, None)
    (record,) = client.matching.records(component=component)
    assert (record.id, record.params) == (match.record.id, match.record.params)
    assert client.matching.withdraw(record.id, reason="Old.").state is trimtab.RecordState.WITHDRAWN
    assert client.matching.records(component=component, state="ACTIVE") == []
    assert client.matching.restore(record.id).state_reason == "administrator has restored it."
    assert client.matching.jobs(record=record.id) == []
    for call, field in (
        (lambda: client.matching.match(trimtab.Job(nodes=-1)), "job.nodes"),
        (lambda: client.matching.records(state="GONE"), "state"),
        (lambda: client.matching.jobs(limit=0), "limit"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.data["field"] == field
    with pytest.raises(NotFound):
        client.matching.withdraw("0")
