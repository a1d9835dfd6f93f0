"""Tests with a small program: linked in an order, profiled by perf, moved onto huge pages, and placed by BOLT."""

import contextlib
import ctypes
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.agent.workloads.shared import SHARED_LIBRARY, WORKLOADS, compile_c, make_once, module_of
from tests.factories.service import require_program

WORKLOAD = WORKLOADS / "function-placement"
linking, graphs, gprof, peers = (module_of(WORKLOAD, name) for name in ("linking", "graph", "gprof", "peers"))
sampling, counters, heldout = (module_of(WORKLOAD, name) for name in ("sampling", "counters", "heldout"))
FUNCTIONS = [f"step_{number}" for number in range(12)]
PR_SET_THP_DISABLE = 41
# `hot` calls `inner` for as long as standard input is open; step_N are there to be ordered
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
#include <poll.h>
#include <sys/wait.h>
static volatile unsigned long sum;
{steps}
__attribute__((noinline)) void inner(unsigned n) {{
    volatile unsigned i; /* on the stack: GCC leaves the frame out otherwise */
    for (i = 0; i < n; i++) sum += i;
}}
__attribute__((noinline)) void hot(void) {{ for (int i = 0; i < 100; i++) {{ inner(20000); sum++; }} }}
int main(int count, char **words) {{
    struct pollfd in = {{0, POLLIN, 0}};
    (void)words;
    if (count > 1) {{
        if (fork() == 0) _exit(0);
        wait(NULL);
        {calls}
        printf("%lu %d\\n", sum, (int)getpid());
        return 0;
    }}
    puts("ready");
    fflush(stdout);
    do hot(); while (poll(&in, 1, 0) == 0);
    return 0;
}}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A prepared target: its object file and how it is linked."""
    for program in ("gcc", "ld.gold", "nm", "objdump"):
        require_program(program, "gcc" if program == "gcc" else "binutils")

    def make(folder: Path) -> None:
        steps = "\n".join(f"__attribute__((noinline)) void {name}(void) {{ sum += 1; }}" for name in FUNCTIONS)
        text = PROGRAM.format(steps=steps, calls=" ".join(f"{name}();" for name in FUNCTIONS))
        (folder / "program.c").write_text(text)
        flags = [
            "-O1",
            "-g0",
            "-ffunction-sections",
            "-fno-omit-frame-pointer",
            "-fno-pie",
            "-c",
        ]
        subprocess.run(["gcc", *flags, "program.c", "-o", "program.o"], cwd=folder, check=True)
        (folder / "link.json").write_text(json.dumps({"folder": ".", "arguments": ["program.o"]}))

    return make_once(tmp_path_factory, "placed-program", make)


@pytest.fixture
def link(source: Path, tmp_path: Path) -> Callable[..., Any]:
    """Link the program; the arguments are those of `Objects.link`."""
    return lambda *arguments, **named: linking.Objects(source).link(tmp_path / "program", *arguments, **named)


@pytest.mark.parametrize("linker", linking.LINKERS)
def test_the_linker_keeps_the_order(link: Callable[..., Any], linker: str) -> None:
    if linker == "lld":
        require_lld()
    order = [*FUNCTIONS[::-1][3:], "hot", "inner"]
    linked = link(order, linker)
    found = sorted(order, key=linked.symbols.address.__getitem__)
    assert found == order
    assert linked.hot == (
        linked.symbols.address[order[0]],
        linked.symbols.address["inner"] + linked.symbols.size["inner"],
    )
    printed = subprocess.run([linked.program, "count"], capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == str(len(FUNCTIONS))


def test_an_order_that_was_not_kept_is_an_error(link: Callable[..., Any]) -> None:
    linked = link(FUNCTIONS)
    with pytest.raises(linking.LinkError, match=r"step_1 is after step_0, and 1 pairs in all"):
        linking.verified(["step_1", "step_0"], linked.symbols)


def test_counters_of_a_process(programs_start: None) -> None:
    """Events of the system stand for the processor's, which most virtual machines do not have."""
    require_program("perf", "linux-perf")
    with subprocess.Popen(
        ["sh", "-c", "read go; for i in 1 2 3; do /bin/true; done"], stdin=subprocess.PIPE
    ) as process:
        with counters.counting(["page-faults", "no-such-event"], [process.pid]) as counted:
            pass
        assert counted == {}
        with counters.counting(["page-faults"], [process.pid]) as counted:
            process.communicate(b"go\n")
    assert counted.keys() == {"page-faults"}


def test_figures_of_counters() -> None:
    report = (
        "2000,,instructions:u,1,100.00,,\n1000,,cycles:u,1,100.00,,\n40,,iTLB-load-misses:u,1,100.00,,\n"
        "<not supported>,,L1-icache-load-misses:u,0,100.00,,\n"
    )
    assert counters.figures(counters.counts_of(report)) == {"ipc": 2.0, "itlb_misses": 20.0}
    assert counters.figures({}) == {}


def test_perf_sees_who_calls_whom(link: Callable[..., Any], tmp_path: Path) -> None:
    require_program("perf", "linux-perf")
    linked = link()
    with subprocess.Popen([linked.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        usage = Path(f"/proc/{process.pid}/stat")

        def work() -> None:
            used = ticks(usage)
            while ticks(usage) - used < 20:  # of processor time
                pass

        stacks = sampling.sample(process.pid, linked.program, linked.symbols, 1000, tmp_path / "perf.data", work)
        process.stdin.close()
    graph = graphs.graph_of(stacks, linked.symbols)
    assert max(graph.time, key=graph.time.__getitem__) == "inner"
    assert graph.arcs["hot", "inner"] == pytest.approx(graph.time["inner"], rel=0.2)
    # the same samples in gprof's format: used functions come first
    profile = tmp_path / "gmon.out"
    gprof.write_profile(stacks, *linked.symbols.range_of(linked.symbols.address), 1000, profile)
    order = gprof.function_order(linked.program, profile)
    assert order.index("inner") < order.index("step_0")


def test_layouts_are_judged_by_a_profile_that_makes_none(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_program("perf", "linux-perf")

    @contextlib.contextmanager
    def start(program: Path, *_: object) -> Iterator[SimpleNamespace]:
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield SimpleNamespace(process=process)
            process.stdin.close()

    def send(server: SimpleNamespace, *_: object) -> None:
        usage = Path(f"/proc/{server.process.pid}/stat")
        used = ticks(usage)
        while ticks(usage) - used < 10:  # of processor time
            pass

    targets_globals = heldout.Target.place.fget.__globals__
    monkeypatch.setitem(targets_globals, "SOURCE", source.parent)
    target = heldout.Target(source.name, "program", start, send, 1)
    with pytest.raises(heldout.MachineError, match=f"no held-out profile of {source.name}: run python3"):
        heldout.read(target)
    monkeypatch.setattr(heldout, "FILE", "heldout-test.json")
    recorded = heldout.record(target)
    assert heldout.read(target) == recorded
    assert recorded.arcs["hot", "inner"] > 0
    assert recorded.size["inner"] > 0


def ticks(stat: Path) -> int:
    """Return the processor time of a process in ticks of 10 ms."""
    return int(stat.read_text().rpartition(")")[2].split()[11])


def test_bolt_places_functions(link: Callable[..., Any], tmp_path: Path) -> None:
    try:
        peers.bolt()
    except Exception as error:  # its class is that of a module that was imported for `peers` alone
        pytest.skip(str(error))
    linked = link(extra=["-Wl,--emit-relocs"])
    stacks = [[linked.symbols.address[name] + 1] for name in ("step_3", "step_7") for _ in range(50)]
    peers.bolted(linked.program, linked.symbols, stacks, tmp_path / "bolted")
    printed = subprocess.run([tmp_path / "bolted", "count"], capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == str(len(FUNCTIONS))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The preload library."""
    return compile_c(tmp_path / "hugetext.so", *SHARED_LIBRARY, WORKLOAD / "src" / "hugetext.c")


def moved(linked: Any, library: Path, mode: str, *, granted: bool = True, **more: str) -> tuple[str, str]:
    """Run the program with the library; return its output and its messages."""
    done = subprocess.run(
        [linked.program, "count"],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "HUGE_TEXT": mode,
            "HUGE_TEXT_HOT": "-".join(f"{address:x}" for address in linked.hot),
            **more,
        },
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=None if granted else lambda: ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_no_code_moves_unless_asked(link: Callable[..., Any], library: Path) -> None:
    assert moved(link(FUNCTIONS), library, "none")[1] == ""


@pytest.mark.parametrize("mode", ["hot", "all"])
def test_code_moves_onto_huge_pages(link: Callable[..., Any], library: Path, mode: str) -> None:
    printed, said = moved(link(FUNCTIONS), library, mode, HUGE_TEXT_MAP="1")
    number, pid = printed.split()
    assert number == str(len(FUNCTIONS))
    map_ = Path(f"/tmp/perf-{pid}.map")
    if re.match(r"hugetext: no huge pages: the kernel granted none", said):
        pytest.skip("the kernel grants no huge pages on this machine")
    try:
        assert re.fullmatch(r"hugetext: huge pages: 2048 of \d+ KiB of code\n", said)
        assert re.search(r"^[0-9a-f]+ [0-9a-f]+ step_3$", map_.read_text(), re.MULTILINE)
        children = [path for path in Path("/tmp").glob("perf-*.map") if path.is_symlink() and path.readlink() == map_]
        assert len(children) == 1
    finally:
        for path in [*Path("/tmp").glob("perf-*.map")]:
            if path == map_ or (path.is_symlink() and path.readlink() == map_):
                path.unlink()


@pytest.mark.parametrize("mode", ["hot", "all"])
def test_without_huge_pages_the_code_stays(link: Callable[..., Any], library: Path, mode: str) -> None:
    printed, said = moved(link(FUNCTIONS), library, mode, granted=False)
    assert printed.split()[0] == str(len(FUNCTIONS))
    assert said == "hugetext: no huge pages: the kernel granted none; the code stays where it was\n"


@pytest.mark.parametrize(
    ("mode", "hot", "message"),
    [
        ("hot", "10-20", "hugetext: HUGE_TEXT_HOT is no range of this program: 10-20\n"),
        ("most", "10-20", "hugetext: HUGE_TEXT is none of none, hot, all: most\n"),
    ],
)
def test_wrong_settings_change_nothing(
    link: Callable[..., Any], library: Path, mode: str, hot: str, message: str
) -> None:
    printed, said = moved(link(FUNCTIONS), library, mode, HUGE_TEXT_HOT=hot)
    assert printed.split()[0] == str(len(FUNCTIONS))
    assert said == message


def require_lld() -> None:
    """Skip a test without lld; in CI fail."""
    try:
        linking.linker_options("lld")
    except linking.LinkError:
        require_program("ld.lld", "lld")
