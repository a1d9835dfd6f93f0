"""Build the module for httpd twice from one source: with a lock, and with transactions.

    python3 build.py FOLDER

FOLDER gets `lock/mod_stm_cache.so` and `tm/mod_stm_cache.so`. The exit status is 3 if a program is missing.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "src"
MACHINE = 3
VARIANTS = {"lock": [], "tm": ["-Wc,-DCACHE_TM", "-Wc,-fgnu-tm", "-litm"]}


def main(argv: Sequence[str]) -> int:
    """Run the command line."""
    apxs = shutil.which("apxs") or shutil.which("apxs2")
    if apxs is None or shutil.which("gcc") is None:
        print("error: apxs or gcc is not in PATH: install Debian packages apache2-dev and gcc", file=sys.stderr)
        return MACHINE
    for name, options in VARIANTS.items():
        folder = Path(argv[0], name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for file in SOURCE.iterdir():
            shutil.copy(file, folder)  # apxs writes objects next to the sources
        command = [apxs, "-Wc,-std=gnu11", "-Wc,-O2", *options, "-c", "mod_stm_cache.c", "cache.c"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
            return 1
        shutil.copy(folder / ".libs" / "mod_stm_cache.so", folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
