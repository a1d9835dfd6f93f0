"""Tests of the proxy: answers, cache, policies, settings."""

import itertools
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.agent.workloads.shared import run
from tests.agent.workloads.web_proxy.proxies import PAGES, compile_proxy, fetch, page, talk
from tests.factories.patience import wait_for

FORMS = ("raw", "gzip")


def test_every_policy_answers_with_the_pages_bytes(proxy: Any, built: Path) -> None:
    policies = ("disk", "decompress", "compress", "hybrid")
    for policy, kept, read in itertools.product(policies, ("both", "raw", "gzip"), ("requested", "gzip", "raw")):
        proxy.command("clear")
        proxy.set(policy=policy, cached_form=kept, disk_form=read, cache_bytes=250_000)
        for number, form in [*itertools.product(range(PAGES), FORMS), *itertools.product(range(2), FORMS)]:
            assert fetch(proxy.port, number, form) == page(built, number)


@pytest.mark.parametrize("device", ["real", "ssd", "hdd"])
@pytest.mark.parametrize("reading", ["buffered", "sequential", "random", "direct"])
def test_every_device_answers_with_the_pages_bytes(proxy: Any, built: Path, device: str, reading: str) -> None:
    proxy.set(cache_bytes=0, device=device, reading=reading)
    for number, form in itertools.product(range(2), FORMS):
        assert fetch(proxy.port, number, form) == page(built, number)
    assert proxy.command("stats")["raw_reads"] == 2


def counted(proxy: Any) -> dict[str, int]:
    """Return the counters that are not zero."""
    stats = proxy.command("stats")
    names = ("raw_hits", "gzip_hits", "raw_reads", "gzip_reads", "decompressed", "compressed")
    return {name: stats[name] for name in names if stats[name]}


@pytest.mark.parametrize(
    ("policy", "forms", "expected"),
    [
        ("disk", ["gzip", "raw", "raw"], {"gzip_reads": 1, "raw_reads": 1, "raw_hits": 1}),
        ("decompress", ["gzip", "raw", "raw"], {"gzip_reads": 1, "decompressed": 1, "raw_hits": 1}),
        ("decompress", ["raw", "gzip", "gzip"], {"raw_reads": 1, "gzip_reads": 1, "gzip_hits": 1}),
        ("compress", ["raw", "gzip", "gzip"], {"raw_reads": 1, "compressed": 1, "gzip_hits": 1}),
        ("compress", ["gzip", "raw"], {"gzip_reads": 1, "raw_reads": 1}),
        ("hybrid", ["gzip", "raw"], {"gzip_reads": 1, "decompressed": 1}),
    ],
)
def test_what_a_miss_does(proxy: Any, policy: str, forms: list[str], expected: dict[str, int]) -> None:
    proxy.set(policy=policy)
    for form in forms:
        fetch(proxy.port, 0, form)
    assert counted(proxy) == expected
    proxy.command("reset")
    assert counted(proxy) == {}


def test_the_literal_rule_reads_gzip_for_both_forms(proxy: Any) -> None:
    proxy.set(disk_form="gzip")
    for form in ("raw", "gzip", "raw"):
        fetch(proxy.port, 0, form)
    assert counted(proxy) == {"gzip_reads": 1, "decompressed": 1, "gzip_hits": 1, "raw_hits": 1}


def test_the_least_recently_used_page_leaves_the_cache(proxy: Any, built: Path) -> None:
    room = sum(len(page(built, number)) for number in (0, 1, 2)) - 1
    proxy.set(cache_bytes=room)
    for number in (0, 1, 0, 2, 0, 1):  # 2 takes the place of 1, which was not used for the longest time
        fetch(proxy.port, number)
    stats = proxy.command("stats")
    assert (stats["raw_reads"], stats["raw_hits"]) == (4, 2)
    assert 0 < stats["cache_used"] <= room


def test_a_smaller_cache_takes_effect_at_once(proxy: Any, built: Path) -> None:
    for number in range(PAGES):
        fetch(proxy.port, number)
    assert proxy.command("stats")["cache_used"] == sum(len(page(built, number)) for number in range(PAGES))
    proxy.set(cache_bytes=100_000)
    assert 0 < proxy.command("stats")["cache_used"] <= 100_000
    proxy.command("clear")
    assert proxy.command("stats")["cache_used"] == 0


def test_hybrid_reads_while_other_threads_decompress(proxy: Any, trial: ModuleType) -> None:
    for number in range(PAGES):
        fetch(proxy.port, number, "gzip")
    load = ["--clients=20", "--gzip-share=0", "--seconds=0.3", "--warm-up=0"]
    reads: dict[str, float] = {}
    proxy.set(policy="decompress", cached_form="gzip")
    assert proxy.measure(load)["raw_reads"] == 0
    proxy.set(policy="hybrid", hybrid_threshold=64)
    assert proxy.measure(load)["raw_reads"] == 0
    proxy.set(hybrid_threshold=1)

    def raced() -> bool:
        reads.update(proxy.measure(load))
        return bool(reads["raw_reads"])

    wait_for(raced, "the kernel interrupts a thread that decompresses")
    assert reads["decompressed"] > 0


def test_the_injected_devices_are_as_slow_as_they_say(proxy: Any, built: Path) -> None:
    proxy.set(device="hdd", cache_bytes=0)
    begun = time.monotonic()
    for number in range(3):
        fetch(proxy.port, number)
    assert time.monotonic() - begun >= sum(len(page(built, number)) for number in range(3)) / 25e6


# --- settings


def test_wrong_settings_change_nothing(proxy: Any, trial: ModuleType) -> None:
    before = proxy.command("get")
    for text, message in (
        ("set policy=hybrid level=10", "level: '10' is not allowed. Use a number from 1 to 9."),
        ("set policy=best", "policy: 'best' is not allowed. Use disk, decompress, compress, hybrid."),
        ("set cache-bytes", "cache-bytes: '' is not allowed. Use a number from 0."),
        ("set size=1", "there is no setting 'size'"),
        ('go "on"', "command 'go \"on\"' is unknown. Use set, get, stats, reset or clear."),
    ):
        with pytest.raises(trial.TrialError) as error:
            proxy.command(text)
        assert message in str(error.value)
    assert proxy.command("get") == before
    assert proxy.command("set level=9 device=hdd") == {**before, "level": 9, "device": "hdd"}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "--pages is missing"),
        (["--pages", "/no-folder"], 3, "cannot open the page 0.html in the folder of pages: No such file"),
        (["--threads", "0"], 2, "--threads: '0' is not allowed. Use a number from 1 to 256."),
        (["--policy", "best"], 2, "policy: 'best' is not allowed"),
        (["--pages"], 2, "the last option has no value"),
    ],
)
def test_the_proxy_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    answer = run([built / "proxy", *arguments])
    assert (answer.returncode, answer.stdout) == (status, "")
    assert message in answer.stderr


# --- HTTP


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("deflate, *", True),
        ("*;q=0, gzip", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, *", False),
        ("x-gzip2, br", False),
        ("", False),
    ],
)
def test_gzip_only_if_it_is_accepted(proxy: Any, accepted: str, compressed: bool) -> None:
    answer = talk(proxy.port, f"GET /0.html HTTP/1.1\r\nAccept-Encoding: {accepted}\r\n\r\n".encode())
    assert (b"\r\nContent-Encoding: gzip\r\n" in answer.partition(b"\r\n\r\n")[0]) is compressed


def test_requests_in_one_packet_are_answered_in_order(proxy: Any, built: Path) -> None:
    requests = [f"GET /{number}.html HTTP/1.1\r\nHost: x\r\n\r\n" for number in (2, 0, 1)]
    answer = talk(proxy.port, "".join(requests).encode())
    for number in (2, 0, 1):
        head, _, answer = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert answer.startswith(page(built, number))
        answer = answer[len(page(built, number)) :]
    assert answer == b""


@pytest.mark.parametrize(
    ("request_line", "status", "kept"),
    [
        ("GET /6.html HTTP/1.1", 404, True),
        ("GET /0.html.gz HTTP/1.1", 404, True),
        ("GET /../main.c HTTP/1.1", 404, True),
        ("GET /99999999999999999999.html HTTP/1.1", 404, True),
        ("GET", 501, True),
        ("POST /0.html HTTP/1.1\r\nContent-Length: 3", 413, False),
        ("DELETE /0.html HTTP/1.1", 501, True),
        ("GET /0.html HTTP/1.0", 200, False),
        ("GET /0.html HTTP/1.1\r\nConnection: close", 200, False),
        (f"GET /{'0' * 9000}", 431, False),
    ],
)
def test_unusual_requests(proxy: Any, request_line: str, status: int, kept: bool) -> None:
    answer = talk(proxy.port, f"{request_line}\r\n\r\nGET /1.html HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.count(b"HTTP/1.1 ") == 1 + kept


# --- the load generator


def test_the_load_finds_a_wrong_byte(proxy: Any, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "pages"
    other.mkdir()
    for number in range(PAGES):
        content = bytearray(page(built, number))
        content[len(content) // 2] ^= 1 if number == PAGES - 1 else 0
        (other / f"{number}.html").write_bytes(content)
    command = [built / "load", "--pages", other, "--port", proxy.port, "--seconds", "60", "--warm-up", "0"]
    for share, message in (
        (0, "as plain text: the body is not the page"),
        (1, "the decompressed body is not the page"),
    ):
        answer = run([*command, "--gzip-share", share])
        assert answer.returncode == 1
        assert f"wrong answer: page {PAGES - 1} " in answer.stderr
        assert message in answer.stderr


@pytest.mark.parametrize(
    ("law", "skew", "weights"),
    [
        ("uniform", 1, [1.0] * PAGES),
        ("geometric", 2, [2.0**-place for place in range(PAGES)]),
        ("zipf", 3, [(place + 1.0) ** -3 for place in range(PAGES)]),
    ],
)
def test_the_laws_of_popularity(proxy: Any, built: Path, law: str, skew: int, weights: list[float]) -> None:
    """A cache for one page has a hit if a page is requested twice in a row."""
    sizes = [len(page(built, number)) for number in range(PAGES)]
    assert max(sizes) < 2 * min(sizes)
    proxy.set(cache_bytes=max(sizes))
    load = [f"--law={law}", f"--skew={skew}", "--gzip-share=0", "--seconds=0.5", "--warm-up=0.1"]
    hits = requests = 0.0
    while requests < 300:  # a busy machine may need several runs
        measured = proxy.measure(load)
        requests += measured["page_requests"]
        hits += measured["raw_hits"]
    expected = sum((weight / sum(weights)) ** 2 for weight in weights)
    assert hits / requests == pytest.approx(expected, abs=0.1)


@pytest.mark.slow("builds it twice with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(built: Path, trial: ModuleType, tmp_path: Path, sanitizer: str) -> None:
    compile_proxy(tmp_path, "-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    (tmp_path / "pages").symlink_to(built / "pages")
    with trial.running(tmp_path, ["--cache-bytes", "200000", "--threads", "8"]) as proxy:
        for policy, device in (("compress", "ssd"), ("hybrid", "ssd"), ("decompress", "real")):
            proxy.set(policy=policy, device=device)
            load = ["--clients=12", "--seconds=0.3", "--warm-up=0", "--law=geometric"]
            assert proxy.measure(load)["requests"] > 0  # the proxy ends at the first finding
        proxy.set(cache_bytes=0)
        assert proxy.measure(load)["hit_ratio"] == 0
