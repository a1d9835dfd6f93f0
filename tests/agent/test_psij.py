"""The runner for PSI/J apart from the contract of runners: its options, and the policy's rule for them."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.runners.jobs import job
from trimtab_agent.config import make_runner
from trimtab_agent.errors import ConfigError, NotAcceptedError, PolicyError
from trimtab_agent.policy import load
from trimtab_agent.runners.psij import PsijRunner, connect
from trimtab_agent.runners.psij_options import Asked, UnreadableOptionError, asked
from trimtab_components.errors import UnsuitableValueError


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` says to Slurm's plug-in, by this process's environment, that its jobs are the agent's."""
    monkeypatch.setenv("TRIMTAB_MATCH", "off")


def test_options_are_fields_of_psij_or_of_the_scheduler() -> None:
    options = ["--cpus=4", "--memory=1000000", "--queue=short", "--cpus=8", "--time=60", "--pbs.l=place=excl"]
    assert asked(options) == Asked(
        {"cpu_cores_per_process": 8, "memory": 1000000}, {"queue_name": "short"}, {"pbs.l": "place=excl"}, 60
    )


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--partition=short", "'--partition=short' is not an option of PSI/J. Use --NAME=VALUE with one of nodes, "),
        ("-q short", "is not an option of PSI/J"),
        ("--queue=a\n#PBS -q b", "is not an option of PSI/J"),
        ("--cpus=0", "--cpus: '0' is not allowed. Use a whole number of at least 1."),
        ("--memory=1G", "--memory: '1G' is not allowed. Use a whole number of bytes of at least 1."),
        ("--time=1h", "--time: '1h' is not allowed. Use a whole number of seconds of at least 1."),
    ],
)
def test_another_option_is_refused(option: str, words: str) -> None:
    with pytest.raises(UnreadableOptionError) as refused:
        asked([option])
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("runner", "executor", "option", "words"),
    [
        ("psij", None, [], "--runner psij and --psij-executor NAME"),
        ("local", "pbs", [], "--runner psij and --psij-executor NAME"),
        ("psij", "cobalt", [], "'cobalt' is not one of pbs, pbs_classic, lsf, flux, slurm, local"),
        ("psij", "flux", [], "--runner psij needs the package psij-python"),
        ("psij", "local", ["--cpus=x"], "--psij-option: --cpus: 'x' is not allowed"),
    ],
)
def test_a_set_up_that_cannot_work_is_refused(
    tmp_path: Path, runner: str, executor: str | None, option: list[str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make_runner(runner, {"psij": option}, psij_executor=executor, shared=tmp_path)


@pytest.mark.parametrize("asks", [False, True])
def test_a_job_that_asks_for_something_else_is_refused(tmp_path: Path, asks: bool) -> None:
    (tmp_path / "work").mkdir()
    runner = PsijRunner(connect("local", tmp_path / "psij"))
    with pytest.raises(UnsuitableValueError if asks else NotAcceptedError, match="is not an option of PSI/J"):
        asyncio.run(runner.submit(tmp_path, job(tmp_path, "true", scheduler_options=["--gres=gpu"], asks=asks)))
    with pytest.raises(NotAcceptedError, match="directives of Slurm need --runner slurm: --time=1"):
        asyncio.run(runner.submit(tmp_path, job(tmp_path, "true", directives=["--time=1"])))
    runner.close()


def test_the_policy_names_what_a_job_may_ask_for(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("psij: {options: [cpus, 'pbs.*']}\nslurm: {nodes: 1}\n")
    file.chmod(0o600)
    policy = load(file)
    assert (policy.under("psij").slurm, policy.under("psij").describe()) == (None, {"psij.options": "cpus, pbs.*"})
    assert policy.under("slurm").psij is None
    policy._expect_of_psij(policy.psij or (), ["--cpus=4", "--pbs.l=x"])
    with pytest.raises(PolicyError, match=r"option of PSI/J 'queue' \(rule psij.options: cpus, pbs\.\*\)"):
        policy._expect_of_psij(policy.psij or (), ["--queue=long"])
