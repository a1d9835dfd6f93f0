"""Apply settings to a running nginx, take them back, show them, and read its status page.

    switch.py apply|revert|verify|stats NAME-PORT

The settings are in two files in /run/trimtab/nginx (or in NGINX_LIVE_RUN), which is empty after a boot: NAME-PORT.conf
for the block `http`, and NAME-PORT.json, by which the workers tell which settings they have. NGINX_LIVE_COMMAND is the
command of nginx with its options (default: nginx), and NGINX_LIVE_PROBE the path whose latency is read.
"""

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

RUN = Path(os.environ.get("NGINX_LIVE_RUN", "/run/trimtab/nginx"))
NGINX = shlex.split(os.environ.get("NGINX_LIVE_COMMAND", "nginx"))
PROBE = os.environ.get("NGINX_LIVE_PROBE", "/status")
# The settings of nginx without any.
DEFAULTS = {
    "keepalive_requests": 1000,
    "keepalive_timeout": 75,
    "sendfile": False,
    "tcp_nopush": False,
    "gzip": False,
    "gzip_comp_level": 1,
    "open_file_cache": 0,
}
PROBES = 10


def main() -> None:
    """Do what the command line asks for."""
    action, instance = sys.argv[1:]
    files = [RUN / f"{instance}.{kind}" for kind in ("conf", "json")]
    if action == "apply":
        wanted = json.load(sys.stdin)
        RUN.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name} {text(name, value)};\n" for name, value in wanted.items())
        # A script of nginx: it ends the request before the line after the include file.
        told = f"return 200 '{json.dumps(wanted)}';\n"
        for file, content in zip(files, (lines, told), strict=True):
            new = file.with_name(f"{file.name}.new")
            new.write_text(content)
            new.chmod(0o644)
            new.replace(file)
        run("-t", "-q")
        run("-s", "reload")
    elif action == "revert":
        # Without the files, a server that is away starts with the old settings.
        for file in files:
            file.unlink(missing_ok=True)
        run("-s", "reload")
    elif action == "verify":
        print(json.dumps({**DEFAULTS, **json.loads(get(instance, "/settings"))}))
    else:
        began = time.perf_counter()
        for _ in range(PROBES):
            get(instance, PROBE)
        took = time.perf_counter() - began
        accepted, handled, requests = (int(word) for word in get(instance, "/status").splitlines()[2].split())
        found = {"latency_us": 1e6 * took / PROBES, "requests": requests, "dropped": accepted - handled}
        print(json.dumps(found))


def text(name: str, value: object) -> str:
    """Return a value as nginx.conf has it."""
    if name == "open_file_cache":
        return f"max={value}" if value else "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def run(*words: str) -> None:
    """Run nginx. Its message becomes that of this program."""
    done = subprocess.run([*NGINX, *words], capture_output=True, text=True, timeout=8)
    if done.returncode:
        sys.exit(f"nginx {words[0]}: {' '.join(done.stderr.split())[:300]}")


def get(instance: str, path: str) -> str:
    """Return a page of the running server."""
    port = instance.rpartition("-")[2]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=4) as page:
        return str(page.read().decode())


if __name__ == "__main__":
    main()
