"""The live repetitions of the replays, without their studies."""

from pathlib import Path

import numpy as np
import pytest

from service.core.space import Space
from tests.benchmarks import live
from tests.benchmarks.tables import NOISY, Table


@pytest.mark.parametrize("one", NOISY, ids=lambda one: one.name)
def test_the_distance_of_a_configuration_is_that_of_its_median_from_the_best(one: Table) -> None:
    subject = one.subject()
    configurations = Space.build(subject.problem.space.parameters, one.constraints).enumerate(10_000)
    assert configurations is not None
    found = {subject.row(each): live.distance(subject, dict(each)) for each in configurations}
    medians = subject.truth[:, 0]
    best, worst = int(np.argmin(medians)), int(np.argmax(medians))
    assert found[best] == min(value for value in found.values()) == 0
    assert found[worst] == pytest.approx(100 * (medians[worst] / medians[best] - 1))


def test_the_studies_of_a_policy_are_one_row(tmp_path: Path) -> None:
    lines = ["sbb-2-random-noise,none,0,1.0,4.0,30", "sbb-2-random-noise,sedr,0,9.0,0.0,10"]
    (tmp_path / "live.csv").write_text("\n".join([*lines, "sbb-2-random-noise,none,1,2.0,5.0,31", ""]))
    assert live.summary(live.stored(tmp_path)) == [
        ["sbb-2-random-noise", "none", "2", "1.5 (1.0, 2.0)", "4.5 (4.0, 5.0)", "30.5 (30.0, 31.0)"],
        ["sbb-2-random-noise", "sedr", "1", "9.0 (9.0)", "0.0 (0.0)", "10.0 (10.0)"],
    ]


def test_a_table_without_noise_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert live.main(["hotspots", "--folder", str(tmp_path / "folder")]) == 1
    assert "TABLES: 'hotspots' is not allowed. Use hotspots-fixed-noise, " in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()
