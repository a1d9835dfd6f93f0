"""The cost of a measurement of the quality: bounded whatever the records' commands are, and paid once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.matching import quality, records, settings
from service.matching.linkage import learning, paths
from service.matching.models import Record
from service.tenancy.principal import Principal
from tests.factories.matching import make_job, make_record

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def record(number: int, command_line: str) -> Record:
    job = make_job(name=f"name{number}", command_line=command_line, submitted_at=BEGIN + timedelta(minutes=number))
    return Record(
        user=job.user, name=job.name, program=job.program, command_line=job.command_line,
        submitted_at=job.submitted_at, nodes=job.nodes, component="c", application=f"a{number % 7}",
    )  # fmt: skip


def letters(number: int) -> str:
    """Return a word of its own for each number."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:010d}") * 6


def test_commands_of_different_words_cost_a_bounded_number_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [0]
    cdist: Any = vars(paths)["cdist"]

    def counted(words: list[str], tokens: list[str], **options: Any) -> Any:
        compared[0] += sum(len(word) * len(token) for word in words for token in tokens[:1]) * len(tokens)
        return cdist(words, tokens, **options)

    monkeypatch.setattr(paths, "cdist", counted)
    long = [record(n, "/" + "/".join(letters(64 * n + place) for place in range(64))[:4000]) for n in range(500)]
    labelled = quality._labelled(quality._bounded(long))
    assert 10 < len(labelled) < 100
    learning.precision_recall(labelled, [0.5], 8)
    # Without bounds there were 500 times as many.
    assert compared[0] <= 64 * 64 * quality.MOST_DIFFERENT**2


def test_usual_records_all_count_and_long_commands_are_bounded() -> None:
    usual = [
        record(n, f"/home/ada/{letters(n % 50)}/bin/ant " + " ".join(f"--option{k}={n}" for k in range(20)))
        for n in range(500)
    ]
    assert len(quality._labelled(quality._bounded(usual))) == 500
    quoted = [record(n, f"/bin/ant '{letters(n) * 60}'") for n in range(500)]
    assert sum(len(one.command_line) for one in quality._bounded(quoted)) <= quality.MOST_CHARACTERS
    many = [record(n, "/bin/ant " + " ".join("x" for _ in range(250))) for n in range(500)]
    assert len(quality._labelled(many)) <= quality.MOST_PARTS // 250


def test_the_result_is_remembered_until_records_or_settings_change(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def report(found: Sequence[Record], *_: object, **__: object) -> object:
        measured.append(len(found))
        return len(measured)

    monkeypatch.setattr(quality, "_report", report)
    first = make_record(principal)
    make_record(principal)
    found: list[object] = [quality.measure(principal) for _ in range(3)]
    assert found == [1, 1, 1]
    quality.measure(principal, learn=True)
    quality.measure(principal, cluster_nodes=9)
    records.change(principal, str(first.pk), "WITHDRAWN")
    quality.measure(principal)
    settings.update(principal, "", settings.Settings(threshold=0.9))
    quality.measure(principal)
    assert measured == [2, 2, 2, 1, 1]
