"""The values in a batch script that could be tuned, and those that it sets itself."""

import pytest

from trimtab_components.batch_places import find, fixed, is_shell, opened, reads_arguments

SCRIPT = """#!/bin/bash
#SBATCH --job-name=solver --cpus-per-task=4   # as many as cores
#SBATCH -N 2 --time=5
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
TILE=64
MODE="fast"
: ${BLOCK:=16}
DEPTH=${DEPTH:-3}
for file in a b; do
  # COMMENT=1 and $COMMENTED
  srun ./solver "$file" --tile $TILE --unroll $UNROLL $1 ${2:-8} '$QUOTED'
done
COUNT=1
COUNT=2
cd $HOME
"""


def test_options_variables_and_arguments_with_the_values_that_the_script_has() -> None:
    assert [(one.name, one.kind, one.target, one.value, one.line, one.fixed) for one in find(SCRIPT)] == [
        ("cpus_per_task", "option", "cpus-per-task", "4", 2, False),
        ("nodes", "option", "nodes", "2", 3, False),
        ("tile", "env", "TILE", "64", 5, True),
        ("mode", "env", "MODE", "fast", 6, True),
        ("block", "env", "BLOCK", "16", 7, False),
        ("depth", "env", "DEPTH", "3", 8, False),
        ("argument2", "argument", "2", "8", 11, False),
        ("unroll", "env", "UNROLL", "", 11, False),
        ("argument1", "argument", "1", "", 11, False),
    ]


def test_nothing_in_an_empty_script_or_in_one_without_values() -> None:
    assert find("") == []
    assert find("#!/bin/sh\nsrun ./solver --tile 64\n") == []


def test_each_parameter_has_a_name_of_its_own() -> None:
    assert [one.name for one in find("#SBATCH --nodes=2\nNODES=2\n")] == ["nodes", "nodes_env"]


def test_a_chosen_variable_comes_from_the_environment_and_nothing_else_changes() -> None:
    assert opened(SCRIPT, ["TILE"]) == SCRIPT.replace("TILE=64", "TILE=${TILE:-64}")
    assert opened("export MODE='fast'  # a comment\r\n", ["MODE"]) == "export MODE=${MODE:-fast}\r\n"
    assert opened(SCRIPT, []) == SCRIPT


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("BLOCK=32", "32"),
        ("export BLOCK=32", "32"),
        ("  BLOCK='32'  # tuned by hand", "'32'"),
        ('readonly BLOCK="32"', '"32"'),
        ("declare -i BLOCK=32", "32"),
        ("A=1; BLOCK=32", "32"),
        ("A=1 BLOCK=32 ./solver", "32"),
        ("env BLOCK=32 ./solver", "32"),
        ("BLOCK=$((4 * 8))", "$((4 * 8))"),
        ("BLOCK=$SLURM_CPUS_PER_TASK", "$SLURM_CPUS_PER_TASK"),
        ("for BLOCK in 16 32; do ./solver; done", "..."),
        ("if true; then echo; fi\nBLOCK=32", "32"),
        ("f() {\n  echo\n}\nBLOCK=32", "32"),
    ],
)
def test_a_variable_that_the_script_sets_itself(line: str, value: str) -> None:
    found = fixed(f"#!/bin/bash\n{line}\n./solver $BLOCK\n")["BLOCK"]
    assert found.value == value
    assert found.remedy == ("BLOCK=${BLOCK:-32}" if "32" in value.strip("'\"")[:2] else "BLOCK=${BLOCK:-...}")


@pytest.mark.parametrize(
    "line",
    [
        "BLOCK=${BLOCK:-32}",
        ": ${BLOCK:=32}",
        "BLOCK=$((BLOCK * 2))",
        'BLOCK="$BLOCK k"',
        "BLOCK+=32",
        '[ -z "$BLOCK" ] && BLOCK=32',
        '[ -n "$BLOCK" ] || BLOCK=32',
        'if [ -z "$BLOCK" ]; then\n  BLOCK=32\nfi',
        "case $1 in\n  a) BLOCK=32;;\nesac",
        "f() {\n  BLOCK=32\n}",
        "cat <<EOF\nBLOCK=32\nEOF",
        "# BLOCK=32",
        "echo BLOCK=32",
        "./solver --set BLOCK=32",
        "./first $BLOCK\nBLOCK=32",
        "export BLOCK",
        "NBLOCK=32",
    ],
)
def test_a_value_from_outside_may_have_an_effect(line: str) -> None:
    assert "BLOCK" not in fixed(f"#!/bin/bash\n{line}\n./solver $BLOCK\n")


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("/bin/bash", True),
        ("/bin/sh -e", True),
        ("/usr/bin/env bash", True),
        ("/usr/bin/env -S bash -x", True),
        ("/usr/bin/zsh", True),
        ("/usr/bin/python3", False),
        ("/usr/bin/env python3", False),
        ("/usr/bin/fish", False),
    ],
)
def test_shells(first: str, expected: bool) -> None:
    assert is_shell(first.split(maxsplit=1)) is expected


@pytest.mark.parametrize("line", ["./solver $1", './solver "$@"', "./x ${2:-8}", "shift", "for one; do echo; done"])
def test_scripts_that_read_arguments(line: str) -> None:
    assert reads_arguments(f"#!/bin/sh\n{line}\n")


def test_a_script_that_reads_no_argument() -> None:
    assert not reads_arguments("#!/bin/sh\n# $1\n./solver '$1' $TILE $#\n")
