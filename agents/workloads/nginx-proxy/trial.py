"""Load an nginx that passes requests on to another one, check the pages, and print what was measured as JSON.

    python3 trial.py FOLDER [NAME=VALUE ...]

FOLDER has the rendered file proxy.conf. The pages behind the proxy have 0.5 to 300 kB. wrk loads the proxy with 32
connections for 4 seconds. Each page that the proxy answers is compared before the load, and during it no answer but one
of 2xx is allowed. Only the processes of the proxy count.
"""

import random
import re
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import bench

PAGES, SEED = 200, 1
CONNECTIONS, SECONDS = 32, 4
PACKAGES = "the Debian packages nginx-light and wrk"
# An upstream with the defaults of nginx, which no trial changes.
UPSTREAM = """
daemon off; master_process off; user root; pid {folder}/upstream.pid; error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type text/html; server_tokens off;
  server {{ listen 127.0.0.1:{port}; root {folder}/pages; }}
}}
"""
REQUESTS = """
local number = {seed}
request = function()
  number = (number * 1103515245 + 12345) % 2147483648
  return wrk.format("GET", "/" .. math.floor(number / 65536) % {pages} .. ".html")
end
"""


def pages(folder: Path) -> dict[str, str]:
    """Write the pages; return the checksum of each."""
    draw = random.Random(SEED)
    folder.mkdir()
    found = {}
    for number in range(PAGES):
        size = round(500 * 600 ** draw.random())
        body = draw.randbytes(size // 2).hex().encode()
        (folder / f"{number}.html").write_bytes(body)
        found[f"{number}.html"] = bench.checksum([body])
    return found


def measure() -> dict[str, float]:
    """Start both servers, compare the pages, and load the proxy."""
    nginx, wrk = bench.program("nginx", PACKAGES), bench.program("wrk", PACKAGES)
    given = Path(sys.argv[1]) / "proxy.conf"
    with tempfile.TemporaryDirectory(prefix="nginx-") as place:
        folder = Path(place)
        wanted = pages(folder / "pages")
        port, behind = bench.free_port(), bench.free_port()
        (folder / "upstream.conf").write_text(UPSTREAM.format(folder=folder, port=behind))
        # The template names places that only this run knows.
        text = given.read_text().replace("@FOLDER@", place).replace("@PORT@", str(port))
        (folder / "proxy.conf").write_text(text.replace("@UPSTREAM@", str(behind)))
        (folder / "requests.lua").write_text(REQUESTS.format(seed=SEED, pages=PAGES))
        upstream = [nginx, "-p", place, "-e", "stderr", "-c", folder / "upstream.conf"]
        with bench.server(upstream, ready=lambda: bench.listens(behind)):
            command = [nginx, "-p", place, "-e", "stderr", "-c", folder / "proxy.conf"]
            with bench.server(command, ready=lambda: bench.listens(port)) as proxy:
                for name, checksum in wanted.items():
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=30) as answer:
                        bench.expect(bench.checksum([answer.read()]), checksum, f"the checksum of {name}")
                return load(proxy, [wrk, "-t1", f"-c{CONNECTIONS}", "--latency", "-s", folder / "requests.lua"], port)


def load(proxy: bench.Server, command: list[str | Path], port: int) -> dict[str, float]:
    """Load the proxy; return its CPU time for a request and wrk's figures."""
    bench.run([*command, "-d1s", f"http://127.0.0.1:{port}/"])
    before = proxy.cpu_seconds()
    said = bench.run([*command, f"-d{SECONDS}s", f"http://127.0.0.1:{port}/"]).output.decode()
    spent = proxy.cpu_seconds() - before
    for line in said.splitlines():
        if "Non-2xx" in line or "Socket errors" in line:
            raise bench.WrongError(f"wrk: {line.strip()}")
    answered = int(re.search(r"(\d+) requests in", said)[1])
    p99 = re.search(r"^ +99% +([\d.]+)(us|ms|s)$", said, re.MULTILINE)
    unit = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    return {
        "cpu_us": 1e6 * spent / answered,
        "requests_per_second": float(re.search(r"Requests/sec: +([\d.]+)", said)[1]),
        "p99_ms": float(p99[1]) * unit[p99[2]],
        "memory_mib": proxy.peak_memory() / (1 << 20),
    }


if __name__ == "__main__":
    bench.main(measure)
