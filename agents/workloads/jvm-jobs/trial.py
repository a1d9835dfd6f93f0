"""Run a short job on a Java virtual machine with these options, check its output, and print its costs as JSON.

    python3 trial.py build FOLDER [JOB ...]         once: compiles the jobs, and archives the classes of each
    python3 trial.py javac|sql|search FOLDER [OPTION ...]

`javac` compiles 120 generated classes, `sql` uses H2 in memory, and `search` uses Lucene in memory. Options are those
of java; `archive=jdk|job|none` chooses the archive of classes that are loaded without verification: that of the JDK, or
the job's own.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

HERE = Path(__file__).resolve().parent
LIBRARIES = {"sql": ("h2-2.3.232.jar",), "search": ("lucene-core-9.12.0.jar",), "javac": ()}
MAIN = {"sql": "Sql", "search": "Search"}
PACKAGE = "the Debian package openjdk-17-jdk-headless"
CLASSES, METHODS = 120, 12


def source(number: int) -> str:
    """Return a generated class: fields, methods with loops, lambdas and generics, and uses of its neighbours."""
    other = f"Part{(number * 7 + 1) % CLASSES}"
    methods = "\n".join(
        f"""    public int method{one}(int limit) {{
        List<Integer> found = new ArrayList<>();
        for (int index = 0; index < limit; index++) {{
            if ((index * {one + 3} + state) % {number % 11 + 2} == 0) {{
                found.add(index);
            }}
        }}
        Function<Integer, Integer> twice = value -> value * 2 + state;
        switch (limit % 4) {{
            case 0: return found.stream().map(twice).mapToInt(Integer::intValue).sum();
            case 1: return new {other}(limit).state();
            default: return names.getOrDefault("name" + limit, found.size());
        }}
    }}"""
        for one in range(METHODS)
    )
    return f"""import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

public class Part{number} {{
    private final Map<String, Integer> names = new HashMap<>();
    private final int state;

    public Part{number}(int state) {{
        this.state = state;
    }}

    public int state() {{
        return state;
    }}

{methods}
}}
"""


def command(job: str, build: Path, options: list[str], archive: str, output: Path) -> list[str | Path]:
    """Return the command of a job. `output` is the folder of javac's result."""
    shared = {"jdk": [], "none": ["-Xshare:off"], "job": [f"-XX:SharedArchiveFile={build / job}.jsa"]}[archive]
    if job == "javac":
        files = sorted((build / "sources").glob("*.java"))
        return [bench.program("javac", PACKAGE), *(f"-J{one}" for one in [*shared, *options]), "-d", output, *files]
    path = ":".join(map(str, [build / "jobs.jar", *(HERE / "lib" / name for name in LIBRARIES[job])]))
    return [bench.program("java", PACKAGE), *shared, *options, "-cp", path, MAIN[job]]


def result(job: str, done: bench.Done, output: Path) -> str:
    """Return the checksum of what a job has made."""
    if job == "javac":
        return bench.checksum(one.read_bytes() for one in sorted(output.glob("*.class")))
    return bench.checksum([done.output])


def build(folder: Path, jobs: Iterable[str]) -> None:
    """Compile the jobs; for each, write its archive of classes and the checksum of its result."""
    missing = [name for names in LIBRARIES.values() for name in names if not (HERE / "lib" / name).exists()]
    if missing:
        raise bench.MachineError(f"{', '.join(missing)} missing. Run python3 {HERE / 'prepare.py'}")
    (folder / "sources").mkdir(parents=True, exist_ok=True)
    for number in range(CLASSES):
        (folder / "sources" / f"Part{number}.java").write_text(source(number))
    libraries = ":".join(str(HERE / "lib" / name) for names in LIBRARIES.values() for name in names)
    compiler = bench.program("javac", PACKAGE)
    with tempfile.TemporaryDirectory(dir=folder) as classes:
        bench.run([compiler, "-cp", libraries, "-d", classes, *sorted((HERE / "src").glob("*.java"))])
        # an archive of classes needs them in a file
        bench.run([bench.program("jar", PACKAGE), "--create", "--file", folder / "jobs.jar", "-C", classes, "."])
    for job in jobs:
        with tempfile.TemporaryDirectory(dir=folder) as output:
            done = bench.run(command(job, folder, [], "jdk", Path(output)))
            (folder / f"{job}.sum").write_text(result(job, done, Path(output)))
            # Java writes warnings about classes that it leaves out to the output of the job.
            written = [f"-XX:ArchiveClassesAtExit={folder / job}.jsa"]
            bench.run(command(job, folder, written, "jdk", Path(output)))


def measure() -> dict[str, float]:
    """Run the job that the first argument names."""
    job, folder = sys.argv[1], Path(sys.argv[2])
    archive = bench.settings().get("archive", "jdk")
    options = [word for word in sys.argv[3:] if not word.startswith("archive=")]
    with tempfile.TemporaryDirectory() as output:
        done = bench.run(command(job, folder, options, archive, Path(output)))
        bench.expect(result(job, done, Path(output)), (folder / f"{job}.sum").read_text(), f"the result of {job}")
    return {"cpu_seconds": done.cpu_seconds, "seconds": done.seconds}


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), sys.argv[3:] or LIBRARIES)
    else:
        bench.main(measure)
