"""`trimtab tune-sbatch`: a user's own batch script as trials, with a real Slurm and a real service."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

import trimtab
from tests.factories.patience import wait_for
from tests.factories.slurm import Slurm
from tests.sdk.cli.shell import COMMAND, Shell
from trimtab.cli.script_component import describe
from trimtab.errors import InvalidInput
from trimtab.trial import TrialState

SCRIPT = """#!/bin/bash
#SBATCH --time=5
test "$TILE" -lt 64 || { echo "tile $TILE does not fit"; exit 3; }
echo "cpus $SLURM_CPUS_PER_TASK"
echo "cost: $((TILE + 10 * $1))"
echo "$TILE $1" >> measured
"""
OPTIONS = [
    *("--param", "tile=16,32,64:32", "--pass", "tile=env:TILE"),
    *("--param", "depth=1..2:2", "--pass", "depth=argument", "--pass", "depth=option:--cpus-per-task={value}"),
    *("--metric", r"cost=regex:cost: (\d+)", "--metric", r"cpus=regex:cpus (\d+)"),
]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text(SCRIPT)
    return "job.sh"


def test_a_batch_script_is_tuned_by_the_users_own_jobs(
    slurm: Slurm, shell: Shell, client: trimtab.Client, script: str, name: str, tmp_path: Path
) -> None:
    command = ["tune-sbatch", script, *OPTIONS, "--name", name, "--trials", "6", "--parallel", "2"]
    done = shell.run(*command, "--no-final-check", "--slurm-option=--oversubscribe")
    assert done.returncode == 0, done.stderr
    study = client.get_study(name)
    assert study.state is trimtab.StudyState.COMPLETED
    trials = study.trials()
    assert trials[0].params == {"tile": 32, "depth": 2}, "the default goes first"
    for trial in trials:
        tile, depth = trial.params["tile"], trial.params["depth"]
        if tile == 64:
            assert trial.state is TrialState.INFEASIBLE
            assert "exit code 3\ntile 64 does not fit" in trial.reason
        else:
            assert trial.metrics == {"cost": tile + 10 * depth, "cpus": depth}, "the option of sbatch takes effect"
    assert {trial.state for trial in trials} == {TrialState.COMPLETED, TrialState.INFEASIBLE}
    ran = [line.split() for line in (tmp_path / "measured").read_text().splitlines()]
    assert len(ran) == sum(trial.state is TrialState.COMPLETED for trial in trials), "jobs run in the current folder"
    assert "Recommended: cost 26" in done.stdout
    assert done.stdout.splitlines()[-1] == "TILE=16 sbatch --cpus-per-task=1 job.sh 1"

    # The same command finds the study at its end; another script is not the same study.
    assert "Recommended: cost 26" in shell.succeed(*command)
    found = json.loads(shell.succeed(*command, "--json"))
    assert (found["state"], found["verdict"]["params"]) == ("COMPLETED", {"tile": 16, "depth": 1})
    assert found["command"] == "TILE=16 sbatch --cpus-per-task=1 job.sh 1"
    Path(script).write_text(SCRIPT + "true\n")
    assert "belongs to another version of the script" in shell.fail(*command)


def test_two_interrupts_cancel_the_jobs_and_the_same_command_continues(
    slurm: Slurm, shell: Shell, client: trimtab.Client, script: str, name: str
) -> None:
    Path(script).write_text("#!/bin/bash\n[ -e go ] || sleep 600\necho cost: $tile\n")
    options = ["--param", "tile=1..9", "--metric", r"cost=regex:cost: (\d+)", "--trials", "4", "--parallel", "2"]
    command = ["tune-sbatch", script, *options, "--no-final-check", "--name", name]
    process = subprocess.Popen([*COMMAND, *command], env=shell.environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(slurm.run("squeue", "-h", "-t", "running").splitlines()) == 2, "two jobs run")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any("interrupted, waiting" in line and "running=2" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: process.poll() is not None, "the command ends")
    finally:
        process.kill()
    assert process.returncode == 130
    wait_for(lambda: not slurm.run("squeue", "-h").strip(), "no job is left")
    study = client.get_study(name)
    assert {trial.state for trial in study.trials()} == {TrialState.FAILED}
    Path("go").touch()
    assert "Recommended: cost " in shell.succeed(*command)
    assert sum(trial.state is TrialState.COMPLETED for trial in study.trials()) > 0


def test_the_search_ends_at_once_if_slurm_refuses_the_first_job(
    slurm: Slurm, shell: Shell, client: trimtab.Client, script: str, name: str
) -> None:
    reported = shell.fail("tune-sbatch", script, *OPTIONS, "--name", name, "--slurm-option=--partition=none")
    assert "[script_not_runnable]" in reported
    assert "invalid partition" in reported
    assert len(client.get_study(name).trials()) == 1


def test_a_dry_run_shows_the_job_and_a_missing_slurm_is_named(slurm: Slurm, shell: Shell, script: str) -> None:
    shown = shell.succeed("tune-sbatch", script, *OPTIONS, "--dry-run")
    assert "env: TILE=32" in shown
    assert "scheduler: --cpus-per-task=2" in shown
    assert not Path("trimtab-sbatch").exists()
    shell.environment["PATH"] = "/nowhere"
    reported = shell.fail("tune-sbatch", script, *OPTIONS)
    assert "[script_not_runnable]" in reported
    assert "sbatch" in reported


def test_a_variable_that_the_script_sets_itself_is_refused_before_anything_is_measured(
    shell: Shell, script: str, programs_start: None
) -> None:
    Path(script).write_text("#!/bin/bash\n#SBATCH --time=5\nBLOCK=32\n./solver --block $BLOCK\n")
    options = ["--param", "BLOCK=16,32,64", "--name", "own"]
    for more in (["--dry-run"], [], ["--write-component", "components/job"]):
        reported = shell.fail("tune-sbatch", script, *options, *more)
        assert "[script_not_runnable]" in reported
        assert "as a trial: job.sh:3: BLOCK: the script sets BLOCK to 32 itself" in reported
        assert "Write BLOCK=${BLOCK:-32}" in reported
        assert "in component files" not in reported
    Path(script).write_text("#!/bin/bash\n./solver\n")
    reported = shell.fail("tune-sbatch", script, *options, "--pass", "BLOCK=argument")
    assert "reads no argument such as $1" in reported
    # A corrected script may have the name.
    Path(script).write_text("#!/bin/bash\nBLOCK=${BLOCK:-32}\n./solver --block $BLOCK\n")
    shell.environment["PATH"] = "/nowhere"
    assert "sbatch" in shell.fail("tune-sbatch", script, *options)
    assert not list(Path("trimtab-sbatch/own").glob("*.sh"))


def test_the_component_can_be_written_for_an_agent(shell: Shell, script: str) -> None:
    shell.succeed("tune-sbatch", script, *OPTIONS, "--write-component", "components/job")
    agent = Path(COMMAND[0]).with_name("trimtab-agent")
    checked = subprocess.run([agent, "check", "components"], capture_output=True, text=True, check=True)
    assert "tile" in checked.stdout
    assert (Path("components/job") / "component.yaml").read_text() == (
        "name: job\n"
        "parameters:\n"
        "  tile: {type: ordinal, values: [16, 32, 64], default: 32, env: TILE}\n"
        '  depth: {type: int, min: 1, max: 2, default: 2, flag: "{value}", scheduler: "--cpus-per-task={value}"}\n'
        "applications:\n"
        "  script: {script: job.sh, timeout: 3600.0}\n"
        "metrics:\n"
        '  cost: {type: regex, pattern: "cost: (\\\\d+)"}\n'
        '  cpus: {type: regex, pattern: "cpus (\\\\d+)"}\n'
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": []}, "--param: a value is missing"),
        ({"parameters": ["a=1"]}, "at least two values"),
        ({"parameters": ["a=1..b"]}, "NAME=MIN..MAX"),
        ({"parameters": ["a=1,2:3"]}, "one of them as the default"),
        ({"parameters": ["a=1..2", "a=1..3"]}, "given twice"),
        ({"parameters": ["a-b=1..2"]}, "--pass: a value is missing"),
        ({"parameters": ['a={"type": "int"}']}, "--param: "),
        ({"passed": ["b=argument"]}, "one of the parameters a"),
        ({"passed": ["a=option:-c"]}, "option:--OPTION={value}"),
        ({"passed": ["a=env:1x"]}, "env:VARIABLE"),
        ({"metrics": ["rate=regex"]}, "NAME=regex:PATTERN"),
        ({"metrics": ['rate={"type": "json", "path": "a", "from": "out.json"}']}, "--own-folder"),
    ],
)
def test_a_malformed_option_is_refused_by_name(options: dict[str, list[str]], message: str) -> None:
    given = {"parameters": ["a=1..2"], "passed": [], "metrics": [], **options}
    with pytest.raises(InvalidInput) as refused:
        describe("job", Path("job.sh"), **given, timeout=60, folder=Path("/data"))
    assert message in str(refused.value)


def test_values_get_the_type_that_they_look_like() -> None:
    items = ["a=1..8:2", "b=0.5..2", "c=1,2,4", "d=fast,slow:slow", "e=true,false", 'f={"type":"int","min":1,"max":9}']
    described = describe(
        "job", Path("job.sh"), parameters=items, passed=[], metrics=[], timeout=60, folder=Path("/a{b}")
    )
    assert described.space == (
        trimtab.Int("a", 1, 8, default=2),
        trimtab.Float("b", 0.5, 2, default=0.5),
        trimtab.Ordinal("c", [1, 2, 4], default=1),
        trimtab.Categorical("d", ["fast", "slow"], default="slow"),
        trimtab.Bool("e", default=True),
        trimtab.Int("f", 1, 9),
    )
    assert described.metrics == ("seconds",)
    assert 'cwd: "/a{{b}}"' in described.text()
