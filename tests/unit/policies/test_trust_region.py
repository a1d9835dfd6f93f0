from __future__ import annotations

import pytest

from service.core.live import LiveRecord
from service.policies.trust_region import factor

KEPT = LiveRecord({}, {}, {}, kept=True)
BROKEN = LiveRecord({}, {}, {}, broken="ms")
NEITHER = LiveRecord({}, {}, {})


def test_gains_widen_the_region_and_broken_guards_narrow_it() -> None:
    assert factor([]) == factor([NEITHER]) == 1
    assert factor([KEPT]) == pytest.approx(1.3)
    assert factor([KEPT, NEITHER, BROKEN]) == pytest.approx(0.78)


def test_the_region_comes_back_after_many_broken_guards() -> None:
    assert factor([BROKEN] * 50) == 0.05
    assert factor([*[BROKEN] * 50, KEPT]) == pytest.approx(0.065)
    assert factor([LiveRecord({"x": place}, {}, {}, kept=True) for place in range(50)]) == 4
    assert factor([KEPT] * 50) == pytest.approx(1.3), "further stages and checks of the same settings are no gains"
