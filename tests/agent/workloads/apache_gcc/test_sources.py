"""Tests of the flags, and of prepare.py, which fetches and configures the sources."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agent.workloads.apache_gcc.httpd import LEVELS, WORKLOAD, copy
from tests.agent.workloads.shared import module_of, run
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_components.arguments import effective_values, render
from trimtab_components.schema import Choices, Component

prepare = module_of(WORKLOAD, "prepare")
debian_sources = module_of(WORKLOAD.parent, "debian_sources")


@pytest.fixture(scope="module")
def component(workload: Path, tmp_path_factory: pytest.TempPathFactory) -> Component:
    return load(workload / "component.yaml", Generator(tmp_path_factory.mktemp("generated")))


def test_the_levels_alone_pass_nothing_else(component: Component) -> None:
    for level in LEVELS:
        assert render(component, effective_values(component, {"opt-level": level})).flags == {"": [f"-{level}"]}
    assert render(component, effective_values(component, {})).flags == {"": ["-O2"]}


def test_every_flag_can_be_switched_both_ways(component: Component) -> None:
    for pick, word in ((1, "-fgcse"), (2, "-fno-gcse")):
        given = {
            name: parameter.domain.values[pick]
            for name, parameter in component.parameters.items()
            if isinstance(parameter.domain, Choices) and name != "opt-level"
        }
        [flags] = render(component, effective_values(component, given)).flags.values()
        assert word in flags
        assert any(re.fullmatch(r"--param=max-inline-insns-auto=\d+", flag) for flag in flags)
        done = run(["gcc", *flags, "-x", "c", "-c", "/dev/null", "-o", "/dev/null"])
        assert done.returncode == 0, done.stderr


def test_where_the_sources_come_from(workload: Path) -> None:
    known = json.loads((workload / "source" / "provenance.json").read_text())
    for part in prepare.PARTS:
        assert re.fullmatch(r"[0-9a-f]{64}", known[part]["sha256"])
    commands = json.loads((workload / "source" / "commands.json").read_text())
    compiled = {f"{folder}/{arguments[-1]}" for folder, arguments in commands["compile"]}
    assert {"server/core.c", "modules/generators/mod_cgid.c", "srclib/apr-util/buckets/apr_brigade.c"} <= compiled
    assert "srclib/apr/tables/apr_tables.c" in compiled
    assert not any(name.startswith("support/") for name in compiled)
    assert "-O0" not in {item for _, arguments in commands["compile"] for item in arguments}
    # done already: it says so, and where from
    again = run([sys.executable, workload / "prepare.py"])
    assert again.returncode == 0
    assert known["httpd"]["sha256"] in again.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--httpd", "FILE"], "the tarballs belong together: --apr, --apr-util must be given as well"),
        (["--httpd", "FILE", "--apr", "nowhere", "--apr-util", "FILE"], "--apr is 'nowhere': there is no such file"),
        (["--httpd", f"FILE#sha256={'0' * 64}", "--apr", "FILE", "--apr-util", "FILE"], "--httpd: the SHA-256 of"),
        (["--httpd", "FILE", "--apr", "FILE", "--apr-util", "FILE"], "FILE cannot be unpacked"),
    ],
)
def test_prepare_refuses(tmp_path: Path, options: Sequence[str], message: str, programs_start: None) -> None:
    changed = copy(tmp_path)
    file = tmp_path / "some.tar.gz"
    file.write_bytes(b"nothing of the kind")
    done = run([sys.executable, changed / "prepare.py", *(option.replace("FILE", str(file)) for option in options)])
    assert done.returncode == 1
    assert message.replace("FILE", str(file)) in done.stderr
    assert not (changed / "source").exists()
    assert list((changed / ".part").glob("*")) == []


def test_sources_of_apt() -> None:
    stanzas = (
        "# the main archive\nTypes: deb\nURIs: http://deb.example.org/debian\nSuites: trixie trixie-updates\n"
        "Components: main\nSigned-By: /usr/share/keyrings/a.gpg\n\n"
        "Types: deb\nURIs: http://deb.example.org/security\nSuites: trixie-security\nComponents: main\n"
    )
    wanted = (
        "Types: deb-src\nURIs: http://deb.example.org/debian\nSuites: trixie\n"
        "Components: main\nSigned-By: /usr/share/keyrings/a.gpg\n"
    )
    assert debian_sources.source_entries(stanzas, True, "trixie") == [wanted]
    lines = (
        "deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://deb.example.org/debian trixie main # here\n"
        "# deb http://deb.example.org/debian trixie contrib\n"
        "deb-src http://deb.example.org/debian trixie main\n"
        "deb http://deb.example.org/debian trixie-updates main\n"
    )
    assert debian_sources.source_entries(lines, False, "trixie") == [wanted]
    assert debian_sources.source_entries(lines, False, "sid") == []
