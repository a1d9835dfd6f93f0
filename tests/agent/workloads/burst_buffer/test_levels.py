"""Tests of the injected delays, and of what the two levels keep."""

from tests.agent.workloads.burst_buffer.place import Place


def test_the_directory_has_the_injected_delays(place: Place) -> None:
    """fsync of 4 MiB takes the time of 20 MB/s, and 16 pages that are read one after the other take 16 latencies."""
    script = """
import os, sys, time
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
begun = time.monotonic()
os.write(file, bytes(4 << 20)); os.fsync(file)
assert time.monotonic() - begun >= 0.2
begun = time.monotonic()
other = os.open(sys.argv[1] + "/other", os.O_RDONLY)
for number in range(16): assert os.pread(other, 1, number * 100_000) == b"o"
assert time.monotonic() - begun >= 16 * 0.01
begun = time.monotonic()
"""
    (place.target / "other").write_bytes(b"o" * 2_000_000)
    place.python(script, options=["--bandwidth", 20, "--latency", 10000])
    assert place.counted()["backend_reads"] == 16


RANDOM_READS = """
import os, random, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
blocks = [bytes([number]) * (1 << 18) for number in range(1, 161)]
for block in blocks: os.write(file, block)
os.fsync(file)
places = random.Random(1)
for _ in range(2000):
    page = places.randrange(160 * 64)
    assert os.pread(file, 4096, page * 4096) == blocks[page // 64][:4096]
"""


def test_a_larger_cache_and_a_higher_threshold_are_hit_more_often(place: Place) -> None:
    """40 MiB are read at random. Blocks that the RAM cache does not hold come from the file level, and the share of
    hits is the share of the blocks that the RAM cache keeps.
    """
    for size, threshold in ((16, 50), (16, 100), (40, 80), (40, 100)):
        options = ["--ram-cache-size", size, "--ram-cache-threshold", threshold, "--flash-cache-size", 48]
        place.python(RANDOM_READS, options=[*options, "--flash-cache-threshold", 100])
        counted = place.counted()
        assert counted["ram_hits"] + counted["flash_hits"] == 2000
        assert counted["backend_reads"] == 0
        kept = min(1.0, size * threshold / 100 / 40)
        assert kept - 0.1 <= counted["ram_hits"] / 2000 <= kept + 0.1


RESTART = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for number in range(160): os.write(file, bytes([number]) * (1 << 18))
os.fsync(file)
for number in range(160): assert os.pread(file, 4096, number << 18) == bytes([number]) * 4096
"""


def test_the_file_level_evicts_clean_data_above_its_threshold(place: Place) -> None:
    """40 MiB are read again, the oldest first, from a level of 48 MiB that keeps half of them or all."""
    read = {}
    for threshold in (42, 100):
        options = ["--ram-cache-size", 16, "--ram-cache-threshold", 1, "--flash-cache-size", 48]
        place.python(RESTART, options=[*options, "--flash-cache-threshold", threshold])
        read[threshold] = place.counted()["backend_reads"]
    assert read[100] == 0
    assert 70 <= read[42] <= 90


def test_the_file_level_has_the_injected_delays(place: Place) -> None:
    """40 blocks of 256 KiB are read again from the file level, 5 ms each; 20 MiB pass it at 100 MB/s."""
    script = """
import os, sys, time
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
begun = time.monotonic()
for number in range(80): os.write(file, bytes([number]) * (1 << 18))
os.close(file)
assert time.monotonic() - begun >= 0.2
file = os.open(sys.argv[1] + "/file", os.O_RDONLY)
begun = time.monotonic()
for number in range(40): assert os.pread(file, 1, number << 18) == bytes([number])
assert time.monotonic() - begun >= 40 * 0.005
"""
    sizes = ["--ram-cache-size", 16, "--ram-cache-threshold", 50, "--flash-cache-size", 32]
    place.python(script, options=[*sizes, "--flash-latency", 5000, "--flash-bandwidth", 100])
    assert place.counted()["flash_hits"] == 40
