"""Compress a corpus with zstd and these settings, decompress it, compare, and print what was measured as JSON.

    python3 trial.py prepare FOLDER                              once: the corpora, each of 20 MB
    python3 trial.py log|html|source FOLDER [NAME=VALUE ...]

`log` is the log of a web server, `html` are listings of source code as pages, and `source` are the sources of Python's
standard library. Settings are those of zstd's option --zstd, and `level`. `size` is relative to the one of `zstd -3`.
"""

import html
import io
import json
import keyword
import random
import sys
import sysconfig
import tempfile
import time
import tokenize
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

SIZE, SEED = 20_000_000, 1
# A run is short: the CPU time is that of all of them.
RUNS = 3
LEVEL = "3"
PACKAGE = "the Debian package zstd"


def prepare(folder: Path) -> None:
    """Write the corpora, and the size of each when `zstd -3` has compressed it."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name, parts in {"log": log_lines(), "html": listings(), "source": sources()}.items():
        written = 0
        file = folder / name
        with file.open("wb") as out:
            for part in parts:
                written += out.write(part.encode(errors="replace")[: SIZE - written])
                if written >= SIZE:
                    break
        packed = bench.run([bench.program("zstd", PACKAGE), f"-{LEVEL}", "--single-thread", "-c", file])
        sizes[name] = len(packed.output)
    (folder / "sizes.json").write_text(json.dumps(sizes))


def log_lines() -> Iterator[str]:
    """Yield lines of the log of a web server."""
    draw = random.Random(SEED)
    pages = [f"/{draw.choice(['shop', 'blog', 'api/v1'])}/{draw.randrange(10**5)}" for _ in range(2000)]
    agents = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0" for n in range(90, 130)]
    clients = [".".join(str(draw.randrange(1, 255)) for _ in range(4)) for _ in range(5000)]
    chosen = bench.zipf(len(pages), 0.9, SEED)
    moment = 1_700_000_000.0
    while True:
        moment += draw.expovariate(20)
        stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(moment))
        page, client = pages[next(chosen)], draw.choice(clients)
        status, size = draw.choices([200, 304, 404, 500], [90, 6, 3, 1])[0], draw.randrange(200, 90_000)
        micros, agent = round(draw.lognormvariate(9, 1)), draw.choice(agents)
        yield f'{client} - - [{stamp}] "GET {page} HTTP/1.1" {status} {size} "-" "{agent}" {micros}\n'


def sources() -> Iterator[str]:
    """Yield the sources of Python's standard library, again and again with another first line."""
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    files = [file for file in files if not {"site-packages", "dist-packages"} & set(file.parts)]
    random.Random(SEED).shuffle(files)
    for turn in range(100):
        for file in files:
            yield f"# {turn} {file.name}\n" + file.read_text(errors="replace")


def listings() -> Iterator[str]:
    """Yield sources as pages with marked words."""
    for source in sources():
        parts = ['<!DOCTYPE html>\n<html><head><link rel="stylesheet" href="/s.css"></head><body><pre class="code">\n']
        try:
            for token in tokenize.generate_tokens(io.StringIO(source).readline):
                kind = "k" if keyword.iskeyword(token.string) else tokenize.tok_name[token.type].lower()
                parts.append(f'<span class="{kind}">{html.escape(token.string)}</span>')
        except (tokenize.TokenError, SyntaxError):
            continue
        yield "".join(parts) + "\n</pre></body></html>\n"


def measure() -> dict[str, float]:
    """Compress and decompress the corpus that the first argument names."""
    name, folder, settings = sys.argv[1], Path(sys.argv[2]), bench.settings()
    level = settings.pop("level", LEVEL)
    zstd = bench.program("zstd", PACKAGE)
    options = [f"-{level}", *(["--ultra"] if int(level) > 19 else [])]
    if settings:
        options.append("--zstd=" + ",".join(f"{key}={value}" for key, value in settings.items()))
    with tempfile.TemporaryDirectory(prefix="zstd-") as place:
        packed = Path(place) / "packed"
        command = [zstd, "--quiet", "--force", "--single-thread", *options, folder / name, "-o", packed]
        packing = sum(bench.run(command).cpu_seconds for _ in range(RUNS))
        # a long window needs the reader's permission
        back = [bench.run([zstd, "--decompress", "--long=31", "-c", packed]) for _ in range(RUNS)]
        bench.expect(back[0].output == (folder / name).read_bytes(), True, "the decompressed corpus is the same")
        size = packed.stat().st_size
    wanted = json.loads((folder / "sizes.json").read_text())[name]
    return {
        "cpu_seconds": packing,
        "size": size / wanted,
        "bytes": size,
        "decompress_cpu_seconds": sum(one.cpu_seconds for one in back),
    }


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
    else:
        bench.main(measure)
