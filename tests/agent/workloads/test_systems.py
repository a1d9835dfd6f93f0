"""Components of systems that people run: a trial of each, its checks, and what a crash leaves."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.agent.workloads.shared import WORKLOADS, metrics_in, module_of, run, try_trial
from tests.factories.service import require_program
from trimtab_agent import needs, shipped
from trimtab_components.schema import Need

pytestmark = pytest.mark.usefixtures("programs_start")


def require(workload: str) -> None:
    """Skip the test, or fail in CI, if a program that the component needs is missing."""
    for need in shipped.needs(WORKLOADS / workload):
        assert isinstance(need, Need)
        if needs.missing([need]):
            require_program(need.name, need.package)


def trial_of(workload: str, monkeypatch: pytest.MonkeyPatch, *arguments: object, **constants: object) -> ModuleType:
    """Return the script of a component with these arguments and smaller constants."""
    module = module_of(WORKLOADS / workload, "trial")
    for name, value in constants.items():
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("sys.argv", ["trial.py", *map(str, arguments)])
    return module


def ends_as_wrong(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> str:
    """Assert that the script ends with 1 and prints no result; return its message."""
    with pytest.raises(SystemExit) as ended:
        module.bench.main(module.measure)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (1, "")
    return printed.err


# --- sqlite


@pytest.fixture
def accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """The script of sqlite on a small database."""

    def make(load: str, *settings: str) -> ModuleType:
        file = tmp_path / "accounts.db"
        module = trial_of("sqlite", monkeypatch, load, file, *settings, ROWS=5000, TOTAL=5_000_000)
        small = {"transactions": 60, "look_ups": 2000, "ranges": 20}
        for name, one in module.LOADS.items():
            fewer = {key: value for key, value in small.items() if getattr(one, key)}
            monkeypatch.setitem(module.LOADS, name, replace(one, **fewer))
        if not file.exists():
            module.prepare(tmp_path)
        return module

    return make


@pytest.mark.parametrize("load", ["write", "write-more", "read", "read-ranges"])
def test_sqlite_takes_its_settings(accounts: Callable[..., ModuleType], load: str) -> None:
    found = accounts(
        load, "journal_mode=wal", "wal_autocheckpoint=100", "mmap_size=1048576", "cache_size=500"
    ).measure()
    assert found["cpu_seconds"] > 0
    assert (found["written_mib"] > 0.1) == load.startswith("write")


def test_sqlite_notices_lost_money_and_a_refused_setting(
    accounts: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "error: pragma journal_mode: 'delete' instead of 'undo'" in ends_as_wrong(
        accounts("write", "journal_mode=undo"), capsys
    )
    module = accounts("write")
    monkeypatch.setattr(module, "TOTAL", 1)
    assert "error: the sum of all balances: '5000000' instead of '1'" in ends_as_wrong(module, capsys)
    module = accounts("read")
    monkeypatch.setattr(module, "RANGE", 99)
    changed = module.sqlite3.connect(module.sys.argv[2])
    changed.execute("update account set balance = 0")
    changed.commit()
    changed.close()
    assert "error: the sum of the rows that were read: '0' instead of" in ends_as_wrong(module, capsys)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_sqlite_keeps_acknowledged_transactions_in_a_crash(tmp_path: Path, mode: str) -> None:
    script = WORKLOADS / "sqlite" / "trial.py"
    assert run(["python3", script, "prepare", tmp_path]).returncode == 0
    done = run(["python3", script, "crash", tmp_path / "accounts.db", f"journal_mode={mode}"])
    assert done.returncode == 0, done.stderr
    assert '"acknowledged": 10' in done.stdout


# --- nginx-proxy


def test_a_proxy_that_keeps_its_connections_spends_less(tmp_path: Path) -> None:
    require("nginx-proxy")
    kept = ("--set", 'connection=""', "--set", "keepalive=32", "--set", "buffer_size=64", "--set", "busy=128")
    found = [metrics_in(try_trial(WORKLOADS / "nginx-proxy", tmp_path, "pages", *given)) for given in ((), kept)]
    assert found[1]["cpu_us"] < 0.75 * found[0]["cpu_us"]
    assert found[0]["requests_per_second"] > 0
    assert found[0]["p99_ms"] > 0


def test_busy_buffers_that_nginx_refuses_end_the_trial(tmp_path: Path) -> None:
    require("nginx-proxy")
    printed = try_trial(WORKLOADS / "nginx-proxy", tmp_path, "pages", "--set", "busy=512")
    assert "outcome: infeasible" in printed
    assert '"proxy_busy_buffers_size" must be less than' in printed


def test_another_page_ends_the_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("nginx-proxy")
    text = (WORKLOADS / "nginx-proxy" / "proxy.conf").read_text()
    values = {"workers": 1, "multi_accept": "off", "log": "", "sendfile": "off", "tcp_nopush": "off", "keepalive": 1}
    values |= {"connection": "close", "buffering": "on", "buffer_size": 4, "buffers": 8, "busy": 8, "temp_file": 0}
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", str(value))
    (tmp_path / "proxy.conf").write_text(text)
    module = trial_of("nginx-proxy", monkeypatch, tmp_path)
    pages = module.pages
    monkeypatch.setattr(module, "pages", lambda folder: {**pages(folder), "7.html": "another"})
    assert "error: the checksum of 7.html: " in ends_as_wrong(module, capsys)


# --- compression


def test_zstd_decompresses_to_the_same_corpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("compression")
    module = trial_of("compression", monkeypatch, "log", tmp_path, "strategy=4", "mml=4", "wlog=18", SIZE=300_000)
    module.prepare(tmp_path)
    assert {
        file.name: file.stat().st_size for file in tmp_path.iterdir() if file.name != "sizes.json"
    } == dict.fromkeys(("log", "html", "source"), 300_000)
    found = module.measure()
    assert 0.5 < found["size"] < 1.5
    assert found["cpu_seconds"] > 0
    run_it = module.bench.run

    def cut(command: list[object], **more: object) -> object:
        done = run_it(command, **more)
        return module.bench.Done(done.output[:-1], 0, 0) if "--decompress" in command else done

    monkeypatch.setattr(module.bench, "run", cut)
    assert "error: the decompressed corpus is the same: 'False'" in ends_as_wrong(module, capsys)


def test_a_strategy_that_zstd_refuses_ends_the_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("compression")
    module = trial_of("compression", monkeypatch, "log", tmp_path, "strategy=77", SIZE=1000)
    module.prepare(tmp_path)
    assert "zstd ended with 1" in ends_as_wrong(module, capsys)


# --- memcached


def test_sizes_of_slabs_change_hits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    require("memcached")
    sizes = {"MEBIBYTES": 8, "ITEMS": 30_000, "LOOK_UPS": 20_000}
    found = [
        trial_of("memcached", monkeypatch, *given, **sizes).measure()
        for given in (("f=1.25",), ("f=2", "slab_chunk_max=524288"))
    ]
    assert found[0]["misses"] != found[1]["misses"]
    assert all(0.3 < one["hit_ratio"] < 0.9 for one in found)
    module = trial_of("memcached", monkeypatch, "f=0.5")
    assert "Factor must be greater than 1" in ends_as_wrong(module, capsys)


def test_another_value_than_the_stored_one_ends_the_trial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("memcached")
    module = trial_of("memcached", monkeypatch, LOOK_UPS=2000)
    value, seen = module.value, []

    def changing(item: int, size: int) -> bytes:
        seen.append(item)
        found: bytes = value(item, size)
        return found if seen.count(item) > 1 else b"x" * size

    monkeypatch.setattr(module, "value", changing)
    assert re.search(r"error: item \d+: 'False' instead of 'True'", ends_as_wrong(module, capsys))


# --- rocksdb


def test_a_filter_saves_reads_of_missing_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require("rocksdb")
    monkeypatch.chdir(tmp_path)
    sizes = {"ROWS": 60_000, "READS": 30_000}
    # With large blocks, a read that a filter saves costs many times what all else costs.
    same = ("compression_type=zstd", "block_size=32768")
    plain, filtered = (
        trial_of("rocksdb", monkeypatch, f"bloom_bits={bits}", *same, **sizes).measure() for bits in (0, 10)
    )
    assert filtered["cpu_us"] < plain["cpu_us"]
    assert filtered["size_mib"] > plain["size_mib"]


def test_a_wrong_number_of_keys_ends_the_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("rocksdb")
    monkeypatch.chdir(tmp_path)
    module = trial_of("rocksdb", monkeypatch, ROWS=1000, READS=2000)  # more than were written: some are missing
    assert "error: the numbers of keys that were found: " in ends_as_wrong(module, capsys)


# --- mariadb


@pytest.mark.slow("a data folder of MariaDB takes a minute; sqlite shows that a crash loses nothing")
@pytest.mark.timeout(900)
def test_mariadb_answers_and_survives_a_crash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("mariadb")
    sizes = {"ROWS": 20_000, "SECONDS": 1, "WARM_UP": 1}
    trial_of("mariadb", monkeypatch, **sizes).prepare(tmp_path)
    for name in ("point_select", "read_write"):
        module = trial_of("mariadb", monkeypatch, name, tmp_path, "innodb_buffer_pool_size=64M", **sizes)
        found = module.measure()
        assert found["tps"] > 0
        assert found["cpu_us"] > 0
        assert found["memory_mib"] > 30
    found = trial_of("mariadb", monkeypatch, "crash", tmp_path, "innodb_flush_method=fsync", **sizes).measure()
    assert found["found"] >= found["acknowledged"] == 300
    module = trial_of("mariadb", monkeypatch, "read_write", tmp_path, **{**sizes, "ROWS": 20_001})
    assert "error: the number of rows of table 1: " in ends_as_wrong(module, capsys)
    module = trial_of("mariadb", monkeypatch, "read_write", tmp_path, "no_such_setting=1", **sizes)
    assert "unknown variable 'no_such_setting=1'" in ends_as_wrong(module, capsys)


# --- runtime-gc

SETTINGS = {
    "cpython": ["gc0=20000", "gc1=5", "gc2=5"],
    "ruby": ["RUBY_GC_HEAP_INIT_SLOTS=100000", "RUBYOPT="],
    "pypy": ["PYPY_GC_NURSERY=1048576"],
    "go": ["GOGC=400"],
}
SLOW = pytest.mark.slow("its runtime is large; cpython and ruby show the same")


@pytest.mark.parametrize(
    "language", ["cpython", "ruby", pytest.param("pypy", marks=SLOW), pytest.param("go", marks=SLOW)]
)
def test_each_language_computes_the_same_sum(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    program = {"cpython": "python3", "pypy": "pypy3"}.get(language, language)
    require_program(program, program)
    sizes = (3000, 30_000, int(run(["python3", WORKLOADS / "runtime-gc/src/records.py", 3000, 30_000]).stdout))
    given = (language, tmp_path, *SETTINGS[language])
    module = trial_of("runtime-gc", monkeypatch, *given, SIZES={language: sizes})
    if language == "go":
        module.prepare(tmp_path)
    assert module.measure()["cpu_seconds"] > 0
    module = trial_of("runtime-gc", monkeypatch, *given, SIZES={language: (*sizes[:2], 1)})
    assert "error: the sum: " in ends_as_wrong(module, capsys)


def test_thresholds_reach_any_program_of_cpython(tmp_path: Path) -> None:
    folder = WORKLOADS / "runtime-gc" / "src"
    command = ["python3", "-c", "import gc; print(gc.get_threshold())"]
    assert run(command, PYTHONPATH=folder, GC_THRESHOLDS="5000,7,9").stdout.strip() == "(5000, 7, 9)"
