"""Every command of the three programs: `--json` is one JSON document alone, and `| head` ends it without a message."""

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import trimtab
from service.main import app as service_app
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from trimtab.cli.main import app
from trimtab_agent.main import parser

ROOT = Path(__file__).resolve().parents[3]
STUDY = """
parameters:
  x: {type: float, min: 1e-3, max: 10, log: true}
  n: {type: int, min: 1, max: 8}
objectives: [{minimize: seconds, unit: s}]
algorithm: random
"""
COMPONENT = """
name: one
parameters: {n: {type: int, min: 1, max: 8, default: 1}}
applications: {main: {command: [echo, "rate: {n}"], timeout: 60}}
metrics: {rate: {type: regex, pattern: 'rate: (.*)'}}
"""
RUNS = {
    "trimtab": [sys.executable, "-c", "from trimtab.cli.main import app; app(prog_name='trimtab')"],
    "trimtab-agent": [sys.executable, "-m", "trimtab_agent.main"],
    "trimtab-service": [sys.executable, "-m", "service.main"],
}
EACH = "a process for each command of the three programs takes minutes"
# Commands that serve, or follow something, until they are stopped; and one that another program replaces.
ENDLESS = {
    *("trimtab vizier", "trimtab follow"),
    *("trimtab-agent run", "trimtab-agent wrap"),
    *(f"trimtab-service {name}" for name in ("up", "web", "grpc", "worker", "beat")),
}
# Commands whose --json is a line for each entry or change, as their help says.
LINES = {"trimtab audit", "trimtab study watch", "trimtab-service doctor"}
# Commands without --json that print something else than messages: texts for a shell, or files of their own form.
TEXTS = {"trimtab-agent completion", "trimtab-service tenants export", "trimtab-service migrate"}


@dataclass
class World:
    """A service with two studies, and files that commands take."""

    service: EmbeddedService
    folder: Path
    name: str

    @property
    def environment(self) -> dict[str, str]:
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("TRIMTAB_", "DJANGO_"))}
        plain["PATH"] = f"{Path(sys.executable).parent}:{plain['PATH']}"
        return {
            **plain,
            "TRIMTAB_URL": self.service.grpc_address,
            "TRIMTAB_TOKEN": self.service.token,
            "XDG_CONFIG_HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def words(self, command: str) -> list[str]:
        """Return a command with arguments that fit this world."""
        places = {
            "STUDY": self.name,
            "ENDED": f"{self.name}-ended",
            "FOLDER": str(self.folder),
            "DATA": str(self.service.data_dir),
            "TOKEN": str(self.service.data_dir / "admin-token"),
            "URL": self.service.grpc_address,
            "NEW": uuid.uuid4().hex[:8],
        }
        found = ARGUMENTS[command]
        for place, text in places.items():
            found = found.replace(place, text)
        return [*RUNS[command.split()[0]], *command.split()[1:], *found.split()]

    def run(self, words: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            **options,
        )


# The arguments of each command. In capitals: what `World.words` fills in.
ARGUMENTS: dict[str, str] = {
    "trimtab tune": "study.yaml --name NEW",
    "trimtab tune-sbatch": "job.sh --param n=1,2 --dry-run",
    "trimtab best": "STUDY",
    "trimtab measure-grid": "study.yaml",
    "trimtab login": "URL --token-file TOKEN",
    "trimtab logout": "URL",
    "trimtab whoami": "",
    "trimtab revoke": "--session NEW",
    "trimtab audit": "--limit 5",
    "trimtab study create": "study.yaml --name NEW",
    "trimtab study list": "",
    "trimtab study show": "STUDY",
    "trimtab study watch": "ENDED",
    "trimtab study prospects": "ENDED",
    "trimtab study outliers": "STUDY",
    "trimtab study enqueue": "STUDY n=3",
    "trimtab study change-space": "STUDY n=1..7 --dry-run",
    "trimtab study edit-space": "STUDY --fix n=1 --dry-run",
    "trimtab study extend": "STUDY --trials 500",
    "trimtab study check": "STUDY",
    "trimtab study pause": "STUDY",
    "trimtab study resume": "STUDY",
    "trimtab study stop": "NEW",
    "trimtab study delete": "NEW --yes",
    "trimtab study export": "STUDY",
    "trimtab study best": "STUDY",
    "trimtab trial list": "STUDY",
    "trimtab trial show": "STUDY 1",
    "trimtab trial log": "STUDY 1",
    "trimtab trial fail": "STUDY 1 --reason NEW",
    "trimtab agent list": "",
    "trimtab agent enrol": "",
    "trimtab agent revoke": "NEW",
    "trimtab live status": "",
    "trimtab live approve": "STUDY 1",
    "trimtab live decline": "STUDY 1",
    "trimtab live stop": "STUDY",
    "trimtab match job": "-- ./ant --grid 64",
    "trimtab match records": "",
    "trimtab match withdraw": "NEW",
    "trimtab match restore": "NEW",
    "trimtab match approval": "",
    "trimtab match jobs": "",
    "trimtab match settings": "",
    "trimtab import optuna": "sqlite:///missing.db",
    "trimtab token create": "NEW --scope read",
    "trimtab token list": "",
    "trimtab token revoke": "NEW",
    "trimtab-agent check": "component.yaml --state-dir FOLDER/state",
    "trimtab-agent try": "component.yaml --state-dir FOLDER/state",
    "trimtab-agent pull": "NEW --server URL --token-file TOKEN --components FOLDER --yes",
    "trimtab-agent workloads": "",
    "trimtab-agent prepare": "sqlite",
    "trimtab-agent completion": "bash",
    "trimtab-agent live status": "--state-dir FOLDER/state",
    "trimtab-agent live stop": "--state-dir FOLDER/state",
    "trimtab-agent live revert": "--state-dir FOLDER/state",
    "trimtab-agent live clear": "--state-dir FOLDER/state",
    "trimtab-agent live calibrate": "component.yaml --state-dir FOLDER/state --seconds 1",
    "trimtab-service login-link": "--data-dir DATA",
    "trimtab-service migrate": "",
    "trimtab-service backup": "FOLDER/NEW.dump --data-dir DATA",
    "trimtab-service restore": "FOLDER/missing.dump --data-dir FOLDER/other",
    "trimtab-service doctor": "--data-dir DATA",
    "trimtab-service replay": "list",
    "trimtab-service tenants list": "--data-dir DATA",
    "trimtab-service tenants create": "t-NEW --data-dir DATA",
    "trimtab-service tenants show": "default --data-dir DATA",
    "trimtab-service tenants limit": "default --data-dir DATA",
    "trimtab-service tenants disable": "missing --data-dir DATA",
    "trimtab-service tenants enable": "default --data-dir DATA",
    "trimtab-service tenants export": "default --data-dir DATA",
    "trimtab-service tenants delete": "missing --yes --data-dir DATA",
    "trimtab-service keycloak provision": "--url http://127.0.0.1:9 --console-url http://127.0.0.1:9",
    "trimtab-service keycloak check": "--url http://127.0.0.1:9 --console-url http://127.0.0.1:9",
}
# Commands that fail in this world, with or without --json: there is no agent, no job and no such name in it.
FAIL = {
    *("trimtab tune", "trimtab measure-grid", "trimtab import optuna", "trimtab revoke"),
    *("trimtab live approve", "trimtab live decline", "trimtab live stop"),
    *("trimtab-agent live calibrate", "trimtab-service keycloak check"),
    *("trimtab-service tenants delete", "trimtab-service tenants disable"),
}


def _typer_commands(program: str, command: Any) -> Iterator[tuple[str, bool]]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            if not child.hidden:
                yield from _typer_commands(f"{program} {name}", child)
    else:
        yield program, any("--json" in option.opts for option in command.params)


def _agent_commands(name: str, found: argparse.ArgumentParser) -> Iterator[tuple[str, bool]]:
    groups = [one for one in found._actions if isinstance(one, argparse._SubParsersAction)]
    if groups:
        for child, below in groups[0].choices.items():
            yield from _agent_commands(f"{name} {child}", below)
    else:
        yield name, any("--json" in one.option_strings for one in found._actions)


COMMANDS = {
    **dict(_typer_commands("trimtab", typer.main.get_command(app))),
    **dict(_agent_commands("trimtab-agent", parser())),
    **dict(_typer_commands("trimtab-service", typer.main.get_command(service_app))),
}
TRIED = sorted(COMMANDS.keys() - ENDLESS)


@pytest.fixture(scope="module")
def world(embedded_service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("every-command")
    (folder / "study.yaml").write_text(STUDY)
    (folder / "component.yaml").write_text(COMPONENT)
    (folder / "job.sh").write_text("#!/bin/sh\necho $n\n")
    name = f"every-{uuid.uuid4().hex[:8]}"
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token, retry_seconds=PATIENCE) as client:
        for one in (name, f"{name}-ended"):
            study = client.create_study(
                one,
                space=[trimtab.Float("x", 1e-3, 10, log=True), trimtab.Int("n", 1, 8)],
                objectives=[trimtab.Minimize("seconds")],
                algorithm="random",
            )
            for trial in study.ask(3):
                study.tell(trial, {"seconds": float(trial.number)})
        study.stop("enough")
    return World(embedded_service, folder, name)


def test_every_command_is_tried() -> None:
    assert sorted(ARGUMENTS) == TRIED


@pytest.mark.slow(EACH)
@pytest.mark.parametrize("command", [one for one in TRIED if COMMANDS[one]])
def test_json_is_one_document_and_nothing_else(world: World, command: str) -> None:
    words = world.words(command)
    at = words.index("--") if "--" in words else len(words)
    done = world.run([*words[:at], "--json", *words[at:]], stdout=subprocess.PIPE)
    if command in LINES:
        assert all(isinstance(json.loads(line), dict) for line in done.stdout.splitlines())
        return
    content = json.loads(done.stdout)
    assert done.returncode == 0 or command in FAIL, done.stderr
    assert done.returncode != 0 or "error" not in content
    assert "Traceback" not in done.stderr


@pytest.mark.slow(EACH)
@pytest.mark.parametrize("command", [one for one in TRIED if not COMMANDS[one] and one not in TEXTS])
def test_a_command_without_json_shows_no_data(world: World, command: str) -> None:
    """It says on standard error, or in one sentence, what it has done."""
    done = world.run(world.words(command), stdout=subprocess.PIPE)
    assert len(done.stdout.splitlines()) <= 2, done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow(EACH)
@pytest.mark.parametrize("command", TRIED)
def test_a_reader_that_has_gone_ends_the_command_silently(world: World, command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = world.run(world.words(command), stdout=write)
    finally:
        os.close(write)
    assert not {"Traceback", "Broken pipe", "BrokenPipe"} & {
        word for word in ("Traceback", "Broken pipe", "BrokenPipe") if word in done.stderr
    }, done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode in (0, 1, 2), done.stderr


@pytest.mark.parametrize("program", RUNS)
@pytest.mark.parametrize("words", ["--help", "--version", "live --help"])
def test_help_ends_silently_too(world: World, program: str, words: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = world.run([*RUNS[program], *words.split()], stdout=write)
    finally:
        os.close(write)
    assert not any(word in done.stderr for word in ("Traceback", "Broken pipe", "BrokenPipe", "Exception ignored"))
