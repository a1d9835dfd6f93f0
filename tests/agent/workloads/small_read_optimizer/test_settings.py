"""Tests of the library's settings."""

import json
from pathlib import Path

import pytest

from tests.agent.workloads.shared import run
from tests.agent.workloads.small_read_optimizer.preload import counted, preloaded


@pytest.mark.parametrize(
    ("variables", "warning"),
    [
        ({"SRO_ENABLE": "0"}, ""),
        ({"SRO_ENABLE": "no"}, "SRO_ENABLE: 'no' is not allowed. Use 0 or 1"),
        (
            {"SRO_CLUSTER_THRESHOLD": "101"},
            "SRO_CLUSTER_THRESHOLD: 101 is above SRO_SEQUENCE_LENGTH. Use a number from 1 to 100. Nothing",
        ),
        (
            {"SRO_SEQUENCE_LENGTH": "1"},
            "SRO_CLUSTER_THRESHOLD: 2 is above SRO_SEQUENCE_LENGTH. Use a number from 1 to 1.",
        ),
        ({"SRO_SEQUENCE_LENGTH": "0"}, "SRO_SEQUENCE_LENGTH: '0' is not allowed. Use a whole number from 1 to 1000000"),
        ({"SRO_SEQUENCE_LENGTH": "1000001"}, "SRO_SEQUENCE_LENGTH: '1000001' is not allowed"),
        ({"SRO_DSC_BINSIZE": "1M"}, "SRO_DSC_BINSIZE: '1M' is not allowed"),
        ({"SRO_CLUSTER_THRESHOLD": "-3"}, "SRO_CLUSTER_THRESHOLD: '-3' is not allowed"),
        ({"SRO_PREFETCH_SIZE": ""}, "SRO_PREFETCH_SIZE: '' is not allowed"),
        ({"SRO_PREFETCH_SIZE": "99999999999999999999"}, "SRO_PREFETCH_SIZE: '99999999999999999999' is not allowed"),
        ({"SRO_DIRECTORY": "here"}, "SRO_DIRECTORY: 'here' is not allowed. Use an absolute path"),
        ({"SRO_COUNTERS": "here"}, "SRO_COUNTERS: 'here' is not allowed. Use an absolute path"),
    ],
)
def test_wrong_settings_are_reported_once_and_switch_it_off(
    built: Path, tmp_path: Path, variables: dict[str, str], warning: str
) -> None:
    fakeapp = f"{built}/fakeapp -N 50 {built}/data"
    answer = run(["sh", "-c", f"{fakeapp} && {fakeapp}"], **preloaded(built, tmp_path / "counters", **variables))
    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 2
    assert not (tmp_path / "counters").exists()
    if warning:
        [line] = answer.stderr.splitlines()
        assert line.startswith(f"small-read-optimizer: {warning}")
        assert line.endswith(". Nothing is prefetched.")
    else:
        assert answer.stderr == ""


def test_all_wrong_settings_are_reported_together(built: Path, tmp_path: Path) -> None:
    wrong = {"SRO_PREFETCH_SIZE": "much", "SRO_SEQUENCE_LENGTH": "0"}
    answer = run([built / "fakeapp", "-N", "50", built / "data"], **preloaded(built, tmp_path / "counters", **wrong))
    assert answer.returncode == 0
    assert [line.split()[1] for line in answer.stderr.splitlines()] == ["SRO_SEQUENCE_LENGTH:", "SRO_PREFETCH_SIZE:"]


NOWHERE = "No such file or directory. Use "


@pytest.mark.parametrize(
    ("variables", "warning", "reads"),
    [
        (
            {"SRO_DIRECTORY": "{}/no/folder"},
            f"SRO_DIRECTORY: '{{}}/no/folder': {NOWHERE}a directory that exists",
            [],
        ),
        ({"SRO_DIRECTORY": "{}/file"}, "SRO_DIRECTORY: '{}/file' is not a directory. Use a directory", []),
        ({"SRO_COUNTERS": "{}/no/file"}, f"SRO_COUNTERS: '{{}}/no/file': {NOWHERE}a file that can be written", []),
        ({"SRO_COUNTERS": "{}"}, "SRO_COUNTERS: '{}': Is a directory. Use a file that can be written", []),
        ({"SRO_COUNTERS": "{}/file"}, None, [50, 50]),
        ({"SRO_COUNTERS": "{}/new"}, None, [50, 50]),
    ],
)
def test_a_path_that_does_not_exist_is_reported_once(
    built: Path, tmp_path: Path, variables: dict[str, str], warning: str | None, reads: list[int]
) -> None:
    """The application works as it does without the library."""
    (tmp_path / "file").touch()
    values = {name: value.format(tmp_path) for name, value in variables.items()}
    fakeapp = f"{built}/fakeapp -N 50 {built}/data"
    answer = run(["sh", "-c", f"{fakeapp} && {fakeapp}"], **preloaded(built, tmp_path / "counters", **values))
    assert answer.returncode == 0
    assert [json.loads(line)["operations"] for line in answer.stdout.splitlines()] == [50, 50]
    reported = answer.stderr.splitlines()
    assert len(reported) == (warning is not None)
    assert warning is None or reported[0].startswith(f"small-read-optimizer: {warning.format(tmp_path)}. Nothing is ")
    where = Path(values.get("SRO_COUNTERS", tmp_path / "counters"))
    assert [line["reads"] for line in (counted(where) if reads else [])] == reads


@pytest.mark.parametrize("values", [{"SRO_CLUSTER_THRESHOLD": "100"}, {"SRO_SEQUENCE_LENGTH": "2"}, {}])
def test_the_largest_threshold_that_can_be_met(built: Path, tmp_path: Path, values: dict[str, str]) -> None:
    answer = run([built / "fakeapp", "-N", "150", built / "data"], **preloaded(built, tmp_path / "counters", **values))
    assert (answer.returncode, answer.stderr) == (0, "")
    [line] = counted(tmp_path / "counters")
    assert line["triggers"] == 150 // int(values.get("SRO_CLUSTER_THRESHOLD", 2))
