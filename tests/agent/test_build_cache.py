"""The build cache, shared by processes."""

import fcntl
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from trimtab_agent.supervisor import build_cache

FORK = multiprocessing.get_context("fork")


def never() -> bool:
    return False


class Build:
    """Writes a file of `size` bytes, and counts how often."""

    def __init__(self, entry: Path, size: int = 10, seconds: float = 0.0) -> None:
        self.entry = entry
        self.size = size
        self.seconds = seconds

    def __call__(self) -> None:
        assert list(self.entry.iterdir()) == []
        with (self.entry.parent / f"{self.entry.name}.runs").open("a") as file:
            file.write("x")
        time.sleep(self.seconds)
        (self.entry / "out").write_bytes(b"x" * self.size)

    @property
    def runs(self) -> int:
        return len((self.entry.parent / f"{self.entry.name}.runs").read_text())


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "key"


def use(build: Build, limit: int = 1 << 30) -> float | None:
    handle, seconds = build_cache.use(str(build.entry), limit, build, never)
    os.close(handle)
    return seconds


def test_built_once(entry: Path) -> None:
    build = Build(entry)
    assert use(build) is not None
    assert use(build) is None
    assert build.runs == 1
    assert (entry / "out").read_bytes() == b"x" * 10


def test_a_build_that_fails_is_made_again(entry: Path) -> None:
    build = Build(entry)

    def fail() -> None:
        (entry / "half").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        build_cache.use(str(entry), 1 << 30, fail, never)
    assert use(build) is not None


def test_a_builder_that_was_killed_leaves_nothing_that_counts(entry: Path, programs_start: None) -> None:
    slow = FORK.Process(target=use, args=(Build(entry, seconds=60),))
    slow.start()
    while not entry.exists():
        time.sleep(0.01)
    slow.kill()
    slow.join()
    build = Build(entry)
    assert use(build) is not None
    assert (entry / "out").exists()


def test_processes_share_one_build(entry: Path, programs_start: None) -> None:
    build = Build(entry, seconds=0.2)
    users = [FORK.Process(target=use, args=(build,)) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
        assert user.exitcode == 0
    assert build.runs == 1


def test_waiting_for_another_build_ends_when_the_trial_is_cancelled(entry: Path) -> None:
    entry.parent.mkdir(parents=True)
    handle = os.open(f"{entry}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(InterruptedError):
        build_cache.use(str(entry), 1 << 30, Build(entry), lambda: True)
    os.close(handle)


@pytest.fixture
def three(entry: Path) -> list[Build]:
    """Three outputs of 100 kB, oldest first."""
    builds = [Build(entry.parent / name, size=100_000) for name in ("a", "b", "c")]
    for age, build in zip((30, 20, 10), builds, strict=True):
        use(build)
        os.utime(f"{build.entry}.done", (time.time() - age, time.time() - age))
    return builds


def left(entry: Path) -> list[str]:
    return sorted(path.name for path in entry.parent.iterdir() if path.is_dir())


def test_least_recently_used_goes_first(three: list[Build], entry: Path) -> None:
    use(three[0])  # used now: the oldest no more
    use(Build(entry, size=100_000), limit=320_000)
    assert left(entry) == ["a", "c", "key"]
    assert use(three[1]) is not None


def test_a_build_in_use_stays(three: list[Build], entry: Path) -> None:
    handle, _ = build_cache.use(str(three[0].entry), 1 << 30, three[0], never)
    os.utime(f"{three[0].entry}.done", (0, 0))
    use(Build(entry, size=100_000), limit=1)
    assert left(entry) == ["a", "key"]
    os.close(handle)
