"""The command lines of a trial that its agent reports: all that matters, and no secret."""

from dataclasses import replace
from pathlib import Path

import pytest

from trimtab_agent import invocation
from trimtab_agent.runners.base import BuildSpec, JobSpec, stored_spec

JOB = JobSpec("s/1", "/w", "/w", ["prog", "-n", "4"], {}, {}, 600.0, (), (), {}, "python")


def test_an_invocation_lists_each_command_with_its_own_environment() -> None:
    inherited = {"HOME": "/root", "PATH": "/bin"}
    build = BuildSpec("/b", [["cc", "-O2"]], {**inherited, "CC": "gcc"}, 1.0, 1, own_env=["CC"])
    spec = replace(
        JOB, env={**inherited, "OMP_NUM_THREADS": "4"}, base_env=inherited, own_env=["OMP_NUM_THREADS"], build=build,
        header=[["sync"]], scheduler_options=["--nodes=2"],
    )  # fmt: skip
    shown = invocation.of(spec, "#!/bin/sh\nexec x\n")
    assert [(one.step, list(one.argv), dict(one.environment)) for one in shown.commands] == [
        ("build", ["cc", "-O2"], {"CC": "gcc"}),
        ("header", ["sync"], {}),
        ("command", ["prog", "-n", "4"], {"OMP_NUM_THREADS": "4"}),
    ]
    assert (shown.folder, shown.script, shown.scheduler_options) == ("/w", "#!/bin/sh\nexec x\n", ["--nodes=2"])
    assert shown.host


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["p", "--password=hunter2"], ["p", "--password=***"]),
        (["p", "--api-key", "abcdefgh", "--n", "4"], ["p", "--api-key", "***", "--n", "4"]),
        (["env", "DB_PASSWD=x", "p"], ["env", "DB_PASSWD=***", "p"]),
        (["curl", "https://me:pw@host/x"], ["curl", "https://***@host/x"]),
        (["sh", "-c", "echo hunter22; true"], ["sh", "-c", "echo ***; true"]),
        (["p", "-H", "Authorization: Bearer abc.def"], ["p", "-H", "Authorization: Bearer ***"]),
        # what only sounds like one is what people want to see
        (
            ["p", "--max-tokens=128", "--keys", "7", "--compass=1"],
            ["p", "--max-tokens=128", "--keys", "7", "--compass=1"],
        ),
    ],
)
def test_secrets_of_command_lines(argv: list[str], shown: list[str]) -> None:
    spec = replace(JOB, command=argv, env={"SERVICE_TOKEN": "hunter22"})
    assert invocation.of(spec, "").commands[-1].argv == shown


def test_secrets_of_variables_and_scripts() -> None:
    env = {"MY_SECRET": "s", "LEVEL": "3", "URL": "http://u:p@h/", "INHERITED_TOKEN": "inherited"}
    shown = invocation.of(replace(JOB, env=env, own_env=["MY_SECRET", "LEVEL", "URL"]), "echo inherited")
    assert shown.commands[-1].environment == {"MY_SECRET": "***", "LEVEL": "3", "URL": "http://***@h/"}
    assert shown.script == "echo ***"


def test_folders_are_no_secrets() -> None:
    env = {"PWD": "/home/me", "OLDPWD": "/home/you", "SERVICE_TOKEN_FILE": "/run/token"}
    spec = replace(JOB, command=["/home/me/prog", "--token-file=/run/token"], env=env, own_env=["SERVICE_TOKEN_FILE"])
    (command,) = invocation.of(spec, "cd /home/you").commands
    assert command.argv == ["/home/me/prog", "--token-file=/run/token"]
    assert command.environment == {"SERVICE_TOKEN_FILE": "/run/token"}


def test_it_is_bounded_and_the_application_comes_first() -> None:
    build = BuildSpec("/b", [["cc", "x" * 3000]] * 100, {}, 1.0, 1)
    shown = invocation.of(replace(JOB, build=build, command=["p", "y" * 5000]), "z" * 50_000)
    assert shown.commands[-1].argv[0] == "p"
    assert len(shown.commands[-1].argv[1]) == invocation.TEXT_LENGTH
    assert shown.commands[-1].argv[1].endswith("[...]")
    reported = sum(len(item) for one in shown.commands for item in one.argv) + len(shown.script)
    assert reported <= invocation.TOTAL_LENGTH + len(invocation.CUT)
    assert len(shown.commands) < 100


def test_a_stored_job_is_read_back_unchanged(tmp_path: Path) -> None:
    spec = replace(JOB, build=BuildSpec("/b", [["cc"]], {"A": "1"}, 1.0, 1), artifacts=["*.txt"], run=3)
    assert stored_spec(tmp_path) is None
    (tmp_path / "spec.json").write_text(spec.to_json())
    found = stored_spec(tmp_path)
    assert found is not None
    assert found.to_json() == spec.to_json()
    assert isinstance(found.build, BuildSpec)
