"""Run a target of a build under load, and print the measured values as JSON.

    python3 run.py BUILD httpd --huge hot [--count]

It starts the target in the working folder, warms it up, and loads it once. `cpu_us_per_request` is the processor time
of the server for a request of httpd or a transaction of PostgreSQL. Where the processor has counters, `ipc` is the
number of instructions for each cycle, and `itlb_misses` and `icache_misses` are for 1,000 instructions.

With --count, `i1_misses` and `instructions` for 1,000 requests are simulated by `valgrind --tool=cachegrind`
(`simulated` is 1): httpd without worker processes, PostgreSQL in single-user mode, where a round of queries counts as a
request. The exit status is 1 if the target does not work, and 3 if the machine is the cause.
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path += [str(FOLDER), str(FOLDER.parent)]

import counters  # noqa: E402
from serving import MachineError, ServerError, descendants, processors  # noqa: E402
from targets import POSTGRES, TARGETS, Target, httpd_running, load_httpd  # noqa: E402

MACHINE = 3
HUGE = ("none", "hot", "all")
# as in many current processors; given here, since valgrind would use the sizes that a virtual machine invents
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
# requests or rounds of queries: the counts are the difference of two runs, so that the start does not count
FEW, MANY = 20, 120


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder that build.py has filled")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--huge", choices=HUGE, default="none", help="code on huge pages (default: %(default)s)")
    parser.add_argument("--count", action="store_true", help="also simulate the first-level instruction cache")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    target = TARGETS[options.target]
    build = options.build.resolve()
    try:
        target.source  # noqa: B018  # says what to prepare
        place = build / target.name
        if not (place / "placement.json").is_file():
            raise MachineError(f"{build} has no {target.name}, which was prepared later: remove this build")
        placement = json.loads((place / "placement.json").read_text())
        program = place / "bin" / target.program
        found = measure(target, program, huge_variables(build, placement["hot"], options.huge))
        if options.count:
            found |= simulate(target, program)
    except ServerError as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except (MachineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    kept = {name: value for name, value in placement.items() if isinstance(value, (int, float))}
    print(json.dumps(kept | found))
    return 0


def huge_variables(build: Path, hot: Sequence[str], mode: str) -> dict[str, str]:
    """Return the environment by which hugetext.so moves code of the target."""
    if mode == "none":
        return {}
    return {"LD_PRELOAD": str(build / "hugetext.so"), "HUGE_TEXT": mode, "HUGE_TEXT_HOT": "-".join(hot)}


def measure(target: Target, program: Path, env: Mapping[str, str], requests: int | None = None) -> dict[str, float]:
    """Return the figures of one load. Raise ServerError or MachineError."""
    root = Path.cwd()
    server_cpus, load_cpus = processors()
    count = requests or target.requests
    with target.start(program, root, server_cpus, env) as server:
        target.send(server, count // 10, load_cpus)  # warms up
        with counters.counting(counters.available(), descendants(server.process.pid)) as counts:
            loaded = target.load(server, count, load_cpus)
    log = (root / "server.log").read_text(errors="replace")
    granted = re.search(r"^hugetext: huge pages: (\d+) of", log, re.MULTILINE)
    for line in re.findall(r"^hugetext: .*$", log, re.MULTILINE):
        print(line, file=sys.stderr)
    return {
        "cpu_us_per_request": 1e6 * (loaded.user_seconds + loaded.system_seconds) / loaded.requests,
        "user_us_per_request": 1e6 * loaded.user_seconds / loaded.requests,
        "requests_per_second": loaded.requests / loaded.seconds,
        "huge_kib": float(granted[1]) if granted else 0.0,
        **counters.figures(counts),
    }


def simulate(target: Target, program: Path) -> dict[str, float]:
    """Return misses of a simulated first-level instruction cache, and instructions, for 1,000 requests."""
    if shutil.which("valgrind") is None:
        raise MachineError("valgrind is not in PATH: install it (Debian package valgrind)")
    few, many = (simulated(target, program, count) for count in (FEW, MANY))
    more = {event: (many[event] - few[event]) * 1000 / (MANY - FEW) for event in few}
    return {"i1_misses": more["I1mr"], "instructions": more["Ir"], "simulated": 1}


def simulated(target: Target, program: Path, count: int) -> dict[str, float]:
    """Return the counts of a run under cachegrind with its start and this number of requests."""
    for old in Path().glob("cachegrind.*"):
        old.unlink()
    command = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", *CACHES]
    command.append("--cachegrind-out-file=cachegrind.%p")
    everywhere, _ = processors()
    if target is POSTGRES:
        queries(target, program, command, count)
    else:
        with httpd_running(program, Path.cwd(), everywhere, {}, before=command) as server:
            load_httpd(server, count, everywhere, clients=1)
    totals: dict[str, float] = {}
    for file in Path().glob("cachegrind.*"):
        text = file.read_text(errors="replace")
        events, summary = (re.search(rf"^{name}: (.*)$", text, re.MULTILINE) for name in ("events", "summary"))
        if events and summary:
            for name, value in zip(events[1].split(), summary[1].split(), strict=True):
                totals[name] = totals.get(name, 0.0) + float(value)
    if "I1mr" not in totals:
        raise MachineError("valgrind has written no counts")
    return totals


def queries(target: Target, program: Path, before: Sequence[str], count: int) -> None:
    """Run rounds of queries in PostgreSQL's single-user mode on a copy of the database."""
    data = Path("single")
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(target.source / "data", data)
    text = "".join(
        line.replace(":account::text", f"'{1 + 97 * number}'").replace(":account", str(1 + 97 * number)) + "\n"
        for number in range(count)
        for line in single_lines()
    )
    done = subprocess.run(
        [*before, str(program), "--single", "-D", str(data), "-c", "fsync=off", "postgres"],
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode or "ERROR" in done.stderr:
        raise ServerError(f"PostgreSQL ended with {done.returncode}:\n{done.stderr[-1000:]}")


def single_lines() -> list[str]:
    """Return the queries with one on each line, as single-user mode reads them."""
    text = (FOLDER / "reports.sql").read_text()
    statements = [" ".join(part.split()) for part in text.partition("\n")[2].split(";") if part.strip()]
    point = "SELECT abalance FROM pgbench_accounts WHERE aid = :account"
    update = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :account"
    return [point, update, *statements]


if __name__ == "__main__":
    sys.exit(main())
