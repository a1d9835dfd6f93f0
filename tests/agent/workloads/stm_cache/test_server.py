"""Tests of httpd with the cache: real requests, byte by byte, and the scripts around it."""

import gzip
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.agent.workloads.shared import WORKLOADS, make_once, module_of, run
from tests.factories.service import require_program
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load as load_component
from trimtab_components.schema import Choices

WORKLOAD = WORKLOADS / "stm-cache"
load, matrix, zipf, build = (module_of(WORKLOAD, name) for name in ("load", "matrix", "zipf", "build"))
PAGES = 12


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The folder with the module in both builds."""
    for program, package in (("apxs", "apache2-dev"), ("siege", "siege"), ("man2html", "man2html-base")):
        require_program(program, package)

    def make(folder: Path) -> None:
        assert build.main([str(folder)]) == 0

    return make_once(tmp_path_factory, "stm-cache-modules", make)


@pytest.fixture(autouse=True)
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manual pages of different sizes in place of Debian's."""
    folder = tmp_path / "manual"
    folder.mkdir()
    for number in range(PAGES):
        text = (
            f".TH PAGE{number} 1\n.SH NAME\npage{number} \\- a page\n.SH TEXT\n" + "Words of a page.\n" * 200 * number
        )
        (folder / f"page{number:02}.1.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(load, "SOURCE", folder)


@pytest.mark.parametrize(
    ("server", "cleanup"),
    [("lock", "deferred"), ("lock", "inside"), ("tm", "deferred"), ("tm", "commit"), ("tm", "inside")],
)
@pytest.mark.parametrize("policy", ["LRU", "GDSF"])
def test_answers_come_from_the_cache_and_are_right(modules: Path, server: str, cleanup: str, policy: str) -> None:
    options = load.Options(server, policy=policy, cleanup=cleanup, method="ml_wt" if server == "tm" else None)
    with load.serving_pages(modules, options) as (_, port, root):
        names = sorted(page.name for page in (root / "pages").iterdir())
        load.check(port, root, names)
        figures = load.figures(port, options)
        assert (figures["hits"], figures["stored"]) == (load.CHECKED, load.CHECKED)
        assert figures["live"] == figures["entries"] == load.CHECKED
        assert load.answer(port, "/man/nothing.1.gz")[0] == 404
        assert load.answer(port, "/man/..%2fpage.sh")[0] == 404


@pytest.mark.parametrize("server", ["lock", "tm"])
def test_bounds_hold_under_load(modules: Path, server: str, tmp_path: Path) -> None:
    """siege asks for all pages; three fit."""
    options = load.Options(server, entries=3, method="gl_wt" if server == "tm" else None)
    with load.serving_pages(modules, options) as (_, port, root):
        names = sorted(page.name for page in (root / "pages").iterdir())
        urls = root / "urls"
        urls.write_text("".join(f"http://127.0.0.1:{port}/man/{name}\n" for name in zipf.draw(names, 1.0, 500)))
        # With 1 s, a busy machine once left no time for a request.
        report = load.load(root, urls, 3, load.processors()[1])
        assert report["transactions"] > PAGES
        load.check(port, root, names)
        figures = load.figures(port, options)
        assert figures["entries"] == figures["live"] == 3
        assert figures["evicted"] > 0
        assert figures["hits"] > 0


def test_a_trial_without_a_cache(modules: Path) -> None:
    found = load.measure(modules, load.Options("none"), 1.0, 1)
    assert found["requests_per_second"] > 0
    # closed loop: the clients' latencies fill the time
    assert found["requests_per_second"] * found["ms_per_request"] / 1000 == pytest.approx(load.CLIENTS, rel=0.35)
    assert "hit_ratio" not in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server": "lock", "cleanup": "commit"}, "commit is none of deferred, inside (built with a lock)"),
        ({"server": "tm", "policy": "FIFO"}, "FIFO is neither LRU nor GDSF"),
        ({"server": "tm", "bytes": 0}, "StmCacheBytes: 0 is no number of 1 or more"),
    ],
)
def test_httpd_refuses(modules: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match="at its start") as caught, load.serving_pages(modules, load.Options(**options)):
        pass
    assert message in str(caught.value)


def test_pages_that_were_not_prepared(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SOURCE", Path("/nowhere"))
    with pytest.raises(Exception, match=r"no manual pages: run python3 .*prepare\.py"):
        load.measure(modules, load.Options("lock"), 1.0, 1)


# --- lists and tables


def test_zipf_lists() -> None:
    names = [f"u{number}" for number in range(50)]
    counts = Counter(zipf.draw(names, 2.0, 20_000))
    assert counts["u0"] / counts["u1"] == pytest.approx(4, rel=0.15)
    assert counts["u0"] / counts["u3"] == pytest.approx(16, rel=0.25)
    assert zipf.draw(names, 1.0, 100) == zipf.draw(names, 1.0, 100) != zipf.draw(names, 1.0, 100, seed=1)
    uniform = Counter(zipf.draw(names, 0.0, 20_000))
    assert min(uniform.values()) > 250


def test_the_zipf_script(programs_start: None) -> None:
    script = WORKLOAD / "zipf.py"
    printed = run(["sh", "-c", f"printf 'a\\nb\\n' | {shutil.which('python3')} {script} 1 30"]).stdout.split()
    assert len(printed) == 30
    assert set(printed) == {"a", "b"}
    refused = run(["sh", "-c", f"{shutil.which('python3')} {script} 1 30 < /dev/null"])
    assert refused.returncode == 2
    assert "0 URLs and length 30: use 1 or more of both" in refused.stderr


def test_the_matrix_says_what_is_proven(tmp_path: Path) -> None:
    rows = []
    for number in range(7):
        rows += [
            f"{number},none,1,1.0,{100 + number},80",
            f"{number},lock,1,1.0,{1000 + number},8",
            f"{number},tm,1,1.0,{800 + number},10",
            f"{number},none,1,2.0,100,80",
            f"{number},lock,1,2.0,{1000 + 10 * number},8",
            f"{number},tm,1,2.0,{1060 - 10 * number},8",
        ]
    file = tmp_path / "measured.csv"
    file.write_text("\n".join([*rows, "0,none,2,3.0,100,80", "0,lock,2,3.0,100,80", "0,tm,2,3.0,100,80", ""]))
    lines = matrix.table(matrix.known(file)).splitlines()
    assert lines[2].startswith("| 1 | 1 | 103/s, 80.00 ms | 1,003/s, 8.00 ms | 803/s, 10.00 ms |")
    assert lines[2].endswith("| slower |")
    assert lines[3].endswith("| no measurable difference |")
    assert lines[4].endswith("| not known: 1 rounds only |")


def test_the_component_offers_what_the_script_takes(modules: Path) -> None:
    """Each method of transactions is one of load.py's options."""
    component = load_component(WORKLOAD / "component.yaml", Generator(modules))
    method = component.parameters["method"].domain
    assert isinstance(method, Choices)
    assert tuple(method.values) == load.METHODS
