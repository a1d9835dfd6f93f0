"""`trimtab token`, `audit`, `agent enrol` and `revoke`, against a real service."""

import json
from pathlib import Path

from tests.factories.patience import wait_for
from tests.sdk.cli.shell import Shell
from trimtab.study import Study


def test_a_token_is_made_used_listed_and_revoked(shell: Shell, tmp_path: Path, study: Study) -> None:
    run = shell.run("tokens", "create", "nightly", "--scope", "tune", "--study", study.name, "--days", "3")
    secret = run.stdout.strip()
    assert (run.returncode, secret[:4], len(secret)) == (0, "trm_", 50)
    assert secret not in run.stderr
    script = Shell(tmp_path / "script", TRIMTAB_URL=shell.environment["TRIMTAB_URL"], TRIMTAB_TOKEN=secret)
    assert study.name in script.succeed("study", "show", study.name)
    assert "[not_permitted]" in script.fail("study", "list")
    assert f"only study {study.name}" in " ".join(script.succeed("whoami").split())
    [listed] = [token for token in json.loads(shell.succeed("token", "list", "--json")) if token["name"] == "nightly"]
    assert (listed["hint"], listed["scopes"], listed["study"]) == (secret[:8], ["tune"], study.name)
    assert listed["last_used_at"] is not None
    assert secret[:8] in shell.succeed("token", "list", "--everyone")
    shell.succeed("token", "revoke", secret[:8])
    wait_for(lambda: script.run("whoami").returncode == 1, "the token is refused")
    assert "[invalid_token]" in script.fail("study", "show", study.name)
    assert "[token_not_found]" in shell.fail("token", "revoke", secret[:8])
    assert "scopes" in shell.fail("token", "create", "x", "--scope", "fly")


def test_the_audit_trail_is_shown_and_exported(shell: Shell, study: Study) -> None:
    for _ in range(60):
        study.tell(study.ask(1)[0], {"seconds": 1.5})
    target = ("--target", f"study/{study.name}")
    listed = shell.succeed("audit", *target, "--limit", "2")
    assert listed.count("administrator-token") == 2
    assert "trial.complete" in listed
    # The newest first; all of them, though they come in pages.
    entries = [json.loads(line) for line in shell.succeed("audit", *target, "--all", "--json").splitlines()]
    assert [entry["action"] for entry in entries] == [*("trial.complete", "study.suggest") * 60, "study.create"]
    assert entries[0]["before"] == {"trial/60": {"state": "ACTIVE"}}
    assert entries[0]["after"] == {"trial/60": {"state": "COMPLETED", "metrics": {"seconds": 1.5}}}
    assert entries[-1]["before"] is None
    assert len(shell.succeed("audit", *target, "--action", "trial.", "--json").splitlines()) == 50
    assert "No changes match" in shell.run("audit", *target, "--until", "2020-01-01").stderr
    assert "No changes match" in shell.run("audit", *target, "--since", "2100-01-01T00:00:00").stderr


def test_an_enrolment_comes_as_a_command(shell: Shell) -> None:
    command = shell.succeed("agents", "enrol", "--minutes", "5").split()
    assert command[0].startswith("TRIMTAB_ENROL_TOKEN=tre_")
    assert command[1:5] == ["trimtab-agent", "run", "--server", shell.environment["TRIMTAB_URL"]]
    # All users of a machine see the arguments of a process.
    assert not any("tre_" in word for word in command[1:])
    assert shell.succeed("agent", "enrol", "--token-only").strip().startswith("tre_")
    assert "[agent_not_enrolled]" in shell.fail("agent", "revoke", "no-such-agent")


def test_the_credentials_of_a_person_are_revoked(shell: Shell) -> None:
    assert "Revoked: nobody-there, with 0 API tokens." in shell.run("revoke", "--person", "nobody-there").stderr
    assert "Give exactly one of --person and --session" in shell.fail("revoke", code=2)
