"""The options of the agent in a file, and the completion of its command line."""

import subprocess
from pathlib import Path

import pytest

from trimtab_agent.completion import SHELLS
from trimtab_agent.errors import ConfigError
from trimtab_agent.main import _options, main

FILE = """
server = "tune.example.org:443"
components = "/etc/trimtab/components"
slots = 4
tls = true
label = ["rack=7", "gpu=none"]
runner = "slurm"
slurm-option = "--exclusive"
trial-cores = 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trimtab-agent.toml"
    path.write_text(FILE)
    path.chmod(0o644)
    return path


def test_options_of_the_file_and_of_the_command_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _options(["run", "--config", str(file), "--slots", "2", "--label", "os=linux"])
    assert (found.server, found.components, found.slots) == (
        "tune.example.org:443",
        Path("/etc/trimtab/components"),
        2,
    )
    assert (found.tls, found.runner, found.slurm_option, found.trial_cores) == (True, "slurm", ["--exclusive"], 2)
    assert found.label == ["rack=7", "gpu=none", "os=linux"]
    monkeypatch.setenv("TRIMTAB_AGENT_CONFIG", str(file))
    # A command takes what is its own.
    assert _options(["try", "sorter"]).runner == "slurm"
    assert _options(["pull", "sorter"]).server == "tune.example.org:443"
    assert _options(["check", "components"]).components == Path("components")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slot = 4", "'slot' is not an option. Did you mean 'slots'?"),
        ("slots = -1", "slots: -1 is below the minimum 0"),
        ('slots = "many"', "slots = 'many' is not a value of --slots, N"),
        ("slots = true", "slots = True is not a text or a number"),
        ("tls = 1", "tls = 1 is not true or false"),
        ('runner = "pbs"', "runner = 'pbs' is not one of local, slurm, ray, psij"),
        ('enrol = "tre_secret"', "'enrol' is not an option. Did you mean 'enrol-file'?"),
        ("slots = ", "is not valid TOML"),
    ],
)
def test_a_wrong_file_says_what_is_allowed(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        _options(["run", "--config", str(file)])
    assert words in str(refused.value)


def test_a_file_that_others_may_write_is_refused(file: Path) -> None:
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="chmod go-w"):
        _options(["run", "--config", str(file)])
    with pytest.raises(ConfigError, match="is not a file"):
        _options(["run", "--config", str(file.with_name("none"))])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    text = capsys.readouterr().out
    for word in ("run", "check", "trial-cores", "policy", "local slurm ray psij"):
        assert word in text


def test_bash_completes_commands_options_and_words(capsys: pytest.CaptureFixture[str], programs_start: None) -> None:
    main(["completion", "bash"])
    text = capsys.readouterr().out

    def completed(*words: str) -> list[str]:
        line = f"{text}\nCOMP_WORDS=(trimtab-agent {' '.join(words)}); COMP_CWORD={len(words)}; _trimtab_agent\n"
        script = line + 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert completed("ch") == ["check"]
    assert completed("run", "--trial-c") == ["--trial-cores"]
    assert completed("try", "--runner", "s") == ["slurm"]
    assert completed("check", "--po") == ["--policy"]
