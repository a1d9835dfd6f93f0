"""Numbers with units, as programs print them and as people write them."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab_components.quantities import QuantityError, parse, seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16.0 ms", 0.016),
        ("1.2s", 1.2),
        ("3m", 180.0),
        ("1,234.5", 1234.5),
        ("12 MiB", 12 * 2**20),
        ("1.5e3 us", 1.5e-3),
        ("1.5e3us", 1.5e-3),
        ("1_000", 1000.0),
        ("1'234'567", 1234567.0),
        ("12\u202f345 ms", 12.345),
        ("1,234.5ms", 1.2345),
        ("-2", -2.0),
        ("\u22122.5", -2.5),
        ("+3.5 ms", 0.0035),
        ("- 4", -4.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("5 min 3 s", 303.0),
        ("5min3s", 303.0),
        ("1h30m", 5400.0),
        ("1 h, 30 min and 5.5 s", 5405.5),
        ("0m1.234s", 1.234),
        ("-1h30m", -5400.0),
        ("1:02:03.5", 3723.5),
        ("0:01.23", 1.23),
        ("90:00", 5400.0),
        ("2 d", 172800.0),
        ("7 µs", 7e-6),
        ("7 \u03bcs", 7e-6),
        ("250 kB", 250_000.0),
        ("1 GiB/s", 2.0**30),
        ("9.41 Gbits/sec", 9.41e9),
        ("10 Mbps", 10e6),
        ("2.4 GHz", 2.4e9),
        ("12.5 %", 12.5),
        ("512Mi", 512 * 2.0**20),
        ("16.0ms,", 0.016),
        ('"12"', 12.0),
        ("  7\n", 7.0),
        ("1e-3", 1e-3),
        ("0", 0.0),
        ("1.5 GB/s", 1.5e9),
        ("1.5GB/sec", 1.5e9),
        ("1.5 GB per second", 1.5e9),
        ("3 GBps", 3e9),
        ("64 Bytes", 64.0),
        ("12 \u00b5s", 12e-6),
        ("350 ns/op", 350e-9),
        ("350 ns/iter", 350e-9),
        ("24 B/op", 24.0),
        ("1,234.5 req/s", 1234.5),
        ("1,234.5 requests per second", 1234.5),
        ("12.5 kops/s", 12_500.0),
        ("1.2 Mops/sec", 1.2e6),
        ("12.3k", 12_300.0),
        ("12.3k IOPS", 12_300.0),
        ("980 tps", 980.0),
        ("7.5 frames/s", 7.5),
        ("12.5 GFLOPS", 12.5e9),
        ("12.5 GFlop/s", 12.5e9),
    ],
)
def test_what_programs_print(text: str, value: float) -> None:
    assert parse(text) == pytest.approx(value, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("16.0 ms", "ms", 16.0),
        ("1.2 s", "ms", 1200.0),
        ("1200", "ms", 1200.0),
        ("5 min 3 s", "min", 5.05),
        ("12 MiB", "KiB", 12288.0),
        ("1,234 req/s", "req/s", 1234.0),
        ("7 frames", "frames", 7.0),
        ("1:30", "s", 90.0),
        ("12 %", "%", 12.0),
        ("2 GB/s", "MB/s", 2000.0),
        ("2 GB per second", "MB/s", 2000.0),
        ("1.5 us/op", "ns", 1500.0),
        ("12.3k", "IOPS", 12_300.0),
        ("1.2 Mops/s", "ops/s", 1.2e6),
        ("1.2 Mops/s", "kops/s", 1200.0),
        ("5 GFLOPS", "MFLOPS", 5000.0),
    ],
)
def test_in_a_unit(text: str, unit: str, value: float) -> None:
    assert parse(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "words"),
    [
        ("", "", "is not a number"),
        ("fast", "", "is not a number"),
        ("nan", "", "not a finite"),
        ("-NaN", "", "not a finite"),
        ("inf", "", "not a finite"),
        ("\u221e", "", "not a finite"),
        ("-\u221e", "", "not a finite"),
        ("1e400", "", "not a finite"),
        ("1.234,5", "", "a comma separates groups of three digits"),
        ("1,5", "", "a comma separates groups of three digits"),
        ("1,23,456", "", "a comma separates groups of three digits"),
        ("1,234_567", "", "a comma separates groups of three digits"),
        ("1_0", "", "a comma separates groups of three digits"),
        ("1.2.3", "", "a comma separates groups of three digits"),
        ("12 parsecs", "", "not a number with a known unit"),
        ("12M", "", "not a number with a known unit"),
        ("0x10", "", "not a number with a known unit"),
        ("--2", "", "is not a number"),
        ("16 ms", "MiB", "has the unit ms, which is not one of MiB"),
        ("16 ms", "req/s", "has the unit ms, which is not one of req/s"),
        ("12k", "MiB", "has the unit k, which is not one of MiB"),
        ("12k", "ms", "has the unit k, which is not one of ms"),
        ("5 rows/s", "req/s", "has the unit rows/s, which is not one of req/s"),
        ("12 mb/s", "", "not a number with a known unit"),
        ("12 gigabytes/s", "", "not a number with a known unit"),
        ("12 Foo/s", "", "not a number with a known unit"),
        ("12 M/s", "", "not a number with a known unit"),
        ("3 s 5 min", "", "not a number with a known unit"),
        ("1 s 2 s", "", "not a number with a known unit"),
        ("1:2:3", "", "is not a number"),
        ("1:75", "", "is not a number"),
        ("1 2", "", "is not a number"),
        ("\u0661\u0662", "", "is not a number"),
    ],
)
def test_what_is_no_quantity_says_why(text: str, unit: str, words: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse(text, unit)
    assert words in str(refused.value)


FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e90, max_value=1e90)


@given(FLOATS)
def test_a_number_without_a_unit_is_what_python_reads(value: float) -> None:
    assert parse(repr(value)) == value
    assert parse(f"{value:,.3f}") == float(f"{value:.3f}")
    assert parse(f"{value!r} s") == value
    assert parse(repr(value), "MiB") == value


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59_999))
def test_a_time_of_several_parts_is_their_sum(hours: int, minutes: int, milliseconds: int) -> None:
    rest = milliseconds / 1000
    total = 3600 * hours + 60 * minutes + rest
    for text in (
        f"{hours}h {minutes}m {rest}s",
        f"{hours}h{minutes}min{milliseconds}ms",
        f"{hours}:{minutes:02}:{rest:06.3f}",
    ):
        assert seconds(text) == pytest.approx(total, rel=1e-12, abs=1e-9), text


@given(st.text(max_size=30), st.sampled_from(["", "ms", "MiB", "req/s"]))
def test_any_text_is_a_finite_number_or_says_why(text: str, unit: str) -> None:
    try:
        found = parse(text, unit)
    except QuantityError:
        return
    assert math.isfinite(found)


@given(
    FLOATS, st.sampled_from(["ns", "us", "ms", "s", "min", "h"]), st.sampled_from(["ns", "us", "ms", "s", "min", "h"])
)
def test_units_convert_there_and_back(value: float, one: str, other: str) -> None:
    there = parse(f"{value!r} {one}", other)
    assert parse(f"{there!r} {other}", one) == pytest.approx(value, rel=1e-12, abs=sys.float_info.min)
