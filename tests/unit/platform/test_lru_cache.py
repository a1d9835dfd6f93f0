"""The bounded memory of a process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from service.platform.lru_cache import LruCache


def test_a_value_is_returned_until_it_is_popped() -> None:
    memory: LruCache[str, int] = LruCache(2)
    assert memory.get("a") is None
    memory.put("a", 1)
    memory.put("a", 2)
    assert (memory.get("a"), len(memory)) == (2, 1)
    assert (memory.pop("a"), memory.pop("a"), memory.get("a")) == (2, None, None)


def test_the_value_used_longest_ago_is_forgotten_first() -> None:
    memory: LruCache[str, int] = LruCache(2)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.get("a")
    memory.put("c", 3)
    assert [memory.get(key) for key in "abc"] == [1, None, 3]
    memory.get_or_put("a", lambda: 9)
    memory.put("d", 4)
    assert [memory.get(key) for key in "acd"] == [1, None, 4]
    memory.clear()
    assert len(memory) == 0


def test_threads_that_miss_at_once_get_one_value() -> None:
    memory: LruCache[int, object] = LruCache(100)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda index: memory.get_or_put(index % 10, object), range(1000)))
    assert len(set(map(id, found))) == 10


def test_a_value_that_is_popped_belongs_to_one_thread() -> None:
    memory: LruCache[int, object] = LruCache(100)
    for key in range(50):
        memory.put(key, object())
    with ThreadPoolExecutor(8) as threads:
        popped = [one for one in threads.map(lambda index: memory.pop(index % 50), range(400)) if one is not None]
    assert len(popped) == len(set(map(id, popped))) == 50
