"""Run a program that makes many records, in one language with these settings of its collector; print JSON.

    python3 trial.py prepare FOLDER                                     once: the Go program, if Go is installed
    python3 trial.py cpython|pypy|ruby|go FOLDER [NAME=VALUE ...]

Each language computes the same sum. Settings are environment variables of the runtime; `gc0`, `gc1` and `gc2` are
CPython's thresholds, which src/sitecustomize.py sets.
"""

import os
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

SOURCES = Path(__file__).resolve().parent / "src"
# Records that live long, steps, and the sum that the program must print.
SIZES = {
    "cpython": (150_000, 700_000, 235145942),
    "pypy": (300_000, 6_000_000, 539237020),
    "ruby": (200_000, 1_200_000, 372290159),
    "go": (300_000, 6_000_000, 539237020),
}


def prepare(folder: Path) -> None:
    """Compile the Go program, if there is a compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    if go := shutil.which("go"):
        cache = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod", "HOME": os.environ.get("HOME", str(folder))}
        bench.run([go, "build", "-o", folder / "records", SOURCES / "records.go"], env=cache)
        shutil.rmtree(folder / "cache", ignore_errors=True)


def command(language: str, folder: Path) -> list[str | Path]:
    """Return the words before the program's arguments."""
    if language == "go":
        if not (folder / "records").exists():
            raise bench.MachineError(
                "there was no Go compiler when the build ran. Install the Debian package golang-go."
            )
        return [folder / "records"]
    if language == "ruby":
        return [bench.program("ruby", "the Debian package ruby"), SOURCES / "records.rb"]
    name, package = {"pypy": ("pypy3", "pypy3"), "cpython": ("python3", "python3")}[language]
    return [bench.program(name, f"the Debian package {package}"), SOURCES / "records.py"]


def measure() -> dict[str, float]:
    """Run the program of the language that the first argument names."""
    language, folder, settings = sys.argv[1], Path(sys.argv[2]), bench.settings()
    long, steps, wanted = SIZES[language]
    env = {name: value for name, value in settings.items() if name not in ("gc0", "gc1", "gc2")}
    if language == "cpython":
        env |= {"PYTHONPATH": str(SOURCES), "GC_THRESHOLDS": ",".join(settings.get(f"gc{one}", "") for one in range(3))}
    done = bench.run([*command(language, folder), str(long), str(steps)], env=env)
    bench.expect(int(done.output), wanted, "the sum")
    return {"cpu_seconds": done.cpu_seconds, "seconds": done.seconds}


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
    else:
        bench.main(measure)
