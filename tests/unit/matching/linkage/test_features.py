"""Jobs become the features that are compared."""

import shlex
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.matching.linkage.features import (
    LONGEST_NAME,
    LONGEST_TOKEN,
    MOST_TOKENS,
    Moment,
    _unquoted,
    cleaned,
    command,
    features,
    tokens,
)
from service.matching.linkage.job import Job


def test_a_name_keeps_its_letters_and_digits_in_lower_case() -> None:
    assert cleaned("Angry_Ant-2 (Größe)") == "angryant2größe"
    assert cleaned("_-_") == ""
    assert len(cleaned("x" * 1000)) == LONGEST_NAME


def test_a_path_is_split_at_its_separators_and_digits() -> None:
    assert tokens("/home/ann/ant_1637848/sbatch-v2.sh") == ("home", "ann", "ant", "sbatch", "v", "sh")
    assert tokens("/1/2") == ()


@pytest.mark.parametrize(
    ("line", "program", "path", "options"),
    [
        ("sbatch /home/ann/ant_17/sbatch", "sbatch", "/home/ann/ant_17/sbatch", {}),
        ("mpirun -np 4 --hosts /etc/h /opt/ior -b 4m -F", "ior", "/opt/ior", {"-b": ["4m"], "-F": []}),
        ("sh run.sh /data/x --size=4 --size 8", "run.sh", "/data/x", {"--size": ["4", "8"]}),
        ("hydro in.txt --grid 4 -5 .5 -x", "hydro", "hydro", {"": ["in.txt"], "--grid": ["4", "-5", ".5"], "-x": []}),
        ("dd if=/dev/zero bs=4k x", "dd", "dd", {"if": ["/dev/zero"], "bs": ["4k"], "": ["x"]}),
        ("a/b --title 'two words' --end=\"\"", "b", "a/b", {"--title": ["two words"], "--end": [""]}),
        ("a/b --title 'not closed", "b", "a/b", {"--title": ["'not", "closed"]}),
        ("   ", "b", "", {}),
    ],
)
def test_a_command_line_has_a_path_and_options(
    line: str, program: str, path: str, options: dict[str, list[str]]
) -> None:
    assert command(line, program) == (path, tuple(sorted((key, tuple(values)) for key, values in options.items())))


def test_times_are_compared_in_utc() -> None:
    time = datetime(2024, 3, 1, 0, 30, 15, tzinfo=timezone(timedelta(hours=2)))
    job = Job("ann", "ant", "ior", "ior", time, 2)
    assert (
        features(job).moment
        == Moment(15, 30, 22, 28, 29, 3)
        == features(Job("ann", "ant", "ior", "ior", time.astimezone(UTC), 2)).moment
    )


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="submitted_at"):
        features(Job("ann", "ant", "ior", "ior", datetime(2024, 3, 1), 2))  # noqa: DTZ001


def test_what_is_compared_of_a_long_job_is_bounded() -> None:
    line = "/" + "/".join("x" * 70 + chr(ord("a") + place % 26) for place in range(50)) + " -a=" + "1 " * 300
    found = features(Job("ada", "n" * 255, "ant", line, datetime(2026, 1, 1, tzinfo=UTC), 1))
    assert len(found.name) == LONGEST_NAME
    assert found.tokens == ("x" * LONGEST_TOKEN,) * MOST_TOKENS


@given(st.text("ab '\"\\\\\n\té", max_size=14))
def test_quotes_are_read_as_a_shell_reads_them(line: str) -> None:
    expected: list[str] | None = None
    with suppress(ValueError):
        expected = [word for word in shlex.split(line) if word]
    assert _unquoted(line) == expected
