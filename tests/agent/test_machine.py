from pathlib import Path

import pytest

from trimtab_agent.supervisor.machine import describe

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R)  Xeon(R) CPU\n"


def place(folder: Path, text: str) -> str:
    (folder / "proc").mkdir()
    (folder / "proc" / "cpuinfo").write_text(text)
    return str(folder)


def test_the_processor_and_the_kernel_are_named(tmp_path: Path) -> None:
    found = describe(place=place(tmp_path, INTEL))
    assert found.startswith("Intel(R) Xeon(R) CPU, Linux ")


def test_an_unknown_processor_is_left_out(tmp_path: Path) -> None:
    assert describe(place=str(tmp_path)).startswith("Linux ")


def test_the_compiler_is_named_by_its_version(programs_start: None) -> None:
    assert ", gcc " in describe("gcc")


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_a_compiler_that_does_not_answer_is_left_out(compiler: str, programs_start: None) -> None:
    assert describe(compiler) == describe()
