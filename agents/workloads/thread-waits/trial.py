"""Run a program whose threads wait for each other, check its result, and print its costs as JSON.

    python3 trial.py build FOLDER [JOB ...]           once: makes the inputs, and keeps the results with defaults
    python3 trial.py tesseract|onnxruntime FOLDER [NAME=VALUE ...]

`tesseract` reads two scanned pages. `onnxruntime` computes 3,000 answers of a small network, one after the other.
`threads=0` leaves the number of threads to the program; `wait=active` lets threads that wait use their CPU.
"""

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

HERE = Path(__file__).resolve().parent
TEXT = (
    "the threads of a parallel loop wait for each other at its end and a waiting thread that spins takes the time of a "
    "processor from everybody else on a shared machine which is why a job with fewer threads may be faster"
)
LINES, WIDTH, HEIGHT = 34, 1240, 1754
PACKAGES = {"PIL": "pillow"}
PRECISION = 1e-3


def need(*modules: str) -> None:
    """Raise MachineError if a Python module is missing."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            package = PACKAGES.get(name, name)
            raise bench.MachineError(f"{sys.executable} has no module {name}. Install the Python package {package}.")


def page(path: Path, first: int) -> None:
    """Draw a page of text, as a scanner at 150 dots an inch sees it."""
    need("PIL")
    from PIL import Image, ImageDraw, ImageFont

    words = TEXT.split()
    image = Image.new("L", (WIDTH, HEIGHT), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=26)
    for line in range(LINES):
        chosen = [words[(first + 11 * line + 7 * place) % len(words)] for place in range(11)]
        draw.text((90, 80 + 46 * line), " ".join(chosen), fill=0, font=font)
    image.save(path)


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return OpenMP's variables for these settings."""
    found = {"OMP_WAIT_POLICY": settings.get("wait", "")}
    if settings.get("threads", "0") != "0":
        found |= {"OMP_THREAD_LIMIT": settings["threads"], "OMP_NUM_THREADS": settings["threads"]}
    if settings.get("bind", "default") != "default":
        found["OMP_PROC_BIND"] = settings["bind"]
    return {name: value for name, value in found.items() if value}


def tesseract(folder: Path, settings: dict[str, str]) -> bench.Done:
    """Read the pages; the output is their text."""
    program = bench.program("tesseract", "the Debian package tesseract-ocr")
    command = [program, folder / "pages.txt", "stdout", "-l", "eng"]
    return bench.run(command, env=environment(settings))


def onnxruntime(folder: Path, settings: dict[str, str]) -> bench.Done:
    """Compute the answers of the network; the output is the mean of each."""
    need("numpy", "onnxruntime")
    spinning = "0" if settings.get("wait") == "passive" else "1"
    command = [sys.executable, HERE / "network.py", folder / "network.onnx", settings.get("threads", "0"), spinning]
    return bench.run(command, env=environment(settings))


JOBS = {"tesseract": tesseract, "onnxruntime": onnxruntime}


def check(job: str, found: str, wanted: str) -> None:
    """Raise WrongError if a result differs from that with the defaults. Sums of numbers may differ in rounding."""
    if job == "tesseract":
        bench.expect(bench.checksum([found]), bench.checksum([wanted]), "the text of the pages")
        return
    numbers, others = [[float(word) for word in text.split()] for text in (found, wanted)]
    bench.expect(len(numbers), len(others), "the number of answers")
    for place, (one, other) in enumerate(zip(numbers, others, strict=True)):
        if abs(one - other) > PRECISION * max(1.0, abs(other)):
            raise bench.WrongError(f"answer {place} of the network is {one} instead of {other}")


def build(folder: Path, jobs: Iterable[str]) -> None:
    """Make the inputs, and keep the results with the defaults. A job whose programs are missing is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        try:
            if job == "tesseract":
                pages = [folder / f"page-{number}.png" for number in (1, 2)]
                for number, path in enumerate(pages):
                    page(path, 3 * number)
                (folder / "pages.txt").write_text("".join(f"{path}\n" for path in pages))
            else:
                need("numpy", "onnx")
                bench.run([sys.executable, HERE / "network.py", folder / "network.onnx"])
            (folder / f"{job}.result").write_bytes(JOBS[job](folder, {}).output)
        except bench.MachineError as error:
            print(f"{job} is left out: {error}", file=sys.stderr)


def measure() -> dict[str, float]:
    """Run the job that the first argument names."""
    job, folder = sys.argv[1], Path(sys.argv[2])
    wanted = folder / f"{job}.result"
    if not wanted.exists():
        raise bench.MachineError(
            f"{wanted} is missing: the build has left {job} out. Its messages say what to install."
        )
    done = JOBS[job](folder, bench.settings())
    check(job, done.output.decode(), wanted.read_text())
    return {"cpu_seconds": done.cpu_seconds, "seconds": done.seconds}


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), sys.argv[3:] or JOBS)
    else:
        bench.main(measure)
