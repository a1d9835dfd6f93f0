"""Tests of the cache alone: threads use it at random and check each byte, with all bounds, policies and clean-ups."""

import json
from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, compile_c, make_once, run
from tests.marks import slow_cases

SOURCES = [WORKLOADS / "stm-cache" / "src" / name for name in ("cache.c", "stress.c")]
BUILDS: dict[str, list[str]] = {
    "lock": [],
    "tm": ["-DCACHE_TM", "-fgnu-tm", "-litm"],
    "thread-sanitizer": ["-g", "-fsanitize=thread"],
    "address-sanitizer": ["-g", "-fsanitize=address,undefined"],
}
THREADS = 8
# bytes and entries: both bind, one entry, one byte
BOUNDS = [("20000", "40"), ("100000", "1"), ("1", "1000")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A folder with the program in all builds."""

    def make(folder: Path) -> None:
        for name, options in BUILDS.items():
            compile_c(folder / name, *SOURCES, *options)

    return make_once(tmp_path_factory, "stm-cache-stress", make)


def stress(program: Path, operations: int, *words: str, **variables: str) -> dict[str, int]:
    """Run the program, which checks all that it reads; return its figures."""
    done = run([program, THREADS, operations, *words], **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    figures: dict[str, int] = json.loads(done.stdout)
    assert figures["live"] == figures["entries"]
    return figures


def check(figures: dict[str, int], size: str, entries: str) -> None:
    """Assert that the bounds were used and kept."""
    assert figures["bytes"] <= int(size)
    assert figures["entries"] <= int(entries)
    if size == "1":
        assert figures["stored"] == figures["hits"] == 0 < figures["refused"]
    else:
        assert figures["evicted"] > 100
        assert figures["hits"] > 0


@pytest.mark.parametrize(("size", "entries"), BOUNDS)
@pytest.mark.parametrize("policy", ["lru", "gdsf"])
@pytest.mark.parametrize("cleanup", ["deferred", "inside"])
@pytest.mark.parametrize(
    "build",
    [
        "lock",
        *slow_cases("builds it again with a sanitizer", "thread-sanitizer", "address-sanitizer"),
    ],
)
def test_threads_with_a_lock(programs: Path, build: str, cleanup: str, policy: str, size: str, entries: str) -> None:
    check(stress(programs / build, 1500, size, entries, policy, cleanup), size, entries)


@pytest.mark.parametrize(("size", "entries"), BOUNDS)
@pytest.mark.parametrize("cleanup", ["deferred", "commit", "inside"])
@pytest.mark.parametrize(
    "method",
    [
        "ml_wt",
        *slow_cases("another method of libitm", "serialirr", "gl_wt", "htm"),
    ],
)
def test_threads_with_transactions(programs: Path, method: str, cleanup: str, size: str, entries: str) -> None:
    figures = stress(programs / "tm", 1000, size, entries, "gdsf", cleanup, ITM_DEFAULT_METHOD=method)
    check(figures, size, entries)


@pytest.mark.slow("a million evictions take minutes")
@pytest.mark.parametrize(
    ("build", "cleanup"),
    [("lock", "deferred"), ("lock", "inside"), ("tm", "deferred"), ("tm", "commit"), ("tm", "inside")],
)
def test_a_million_evictions_leak_nothing(programs: Path, build: str, cleanup: str) -> None:
    figures = stress(programs / build, 160_000, "100000", "1", "lru", cleanup, ITM_DEFAULT_METHOD="ml_wt")
    assert figures["evicted"] >= 1_000_000


def test_a_lock_has_no_commit_actions(programs: Path) -> None:
    done = run([programs / "lock", 1, 1, 1000, 10, "lru", "commit"])
    assert done.returncode == 2
    assert done.stderr == "no cache with this clean-up\n"


def test_one_thread_evicts_the_entry_that_was_used_longest_ago(tmp_path: Path, programs_start: None) -> None:
    """LRU keeps what was read last; GDSF keeps what is costly for its size."""
    program = tmp_path / "policy.c"
    program.write_text(
        '#include "cache.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
        "static void put(struct cache *cache, const char *key, size_t bytes, double cost) {\n"
        "    struct cache_entry *entry = cache_entry_create(cache, key, bytes, cost);\n"
        "    cache_put(cache, entry); cache_release(cache, entry); }\n"
        "static int has(struct cache *cache, const char *key) {\n"
        "    struct cache_entry *entry = cache_get(cache, key);\n"
        "    if (entry) cache_release(cache, entry);\n    return entry != NULL; }\n"
        "int main(int count, char **words) {\n    (void)count;\n"
        "    struct cache_options options = {100000, 2, (enum cache_policy)atoi(words[1]), CACHE_DEFERRED};\n"
        "    struct cache *cache = cache_create(&options);\n"
        '    put(cache, "costly", 1000, 9000); put(cache, "cheap", 1000, 10); has(cache, "cheap");\n'
        '    put(cache, "new", 1000, 100);\n'
        '    printf("%d%d%d\\n", has(cache, "costly"), has(cache, "cheap"), has(cache, "new"));\n'
        "    cache_destroy(cache);\n    return 0;\n}\n"
    )
    built = compile_c(tmp_path / "policy", program, SOURCES[0], f"-I{SOURCES[0].parent}")
    assert run([built, 0]).stdout == "011\n"
    assert run([built, 1]).stdout == "101\n"
