"""Run the Python blocks of a page in one namespace: paths of scripts come on standard input, one a line.

After each script a line on standard output says `DONE`, or `FAILED` after the traceback.
"""

import sys
import traceback

DONE, FAILED = "\0done", "\0failed"

if __name__ == "__main__":
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        path = line.strip()
        try:
            with open(path) as script:  # noqa: PTH123
                exec(compile(script.read(), path, "exec"), namespace)
            print(DONE, flush=True)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(FAILED, flush=True)
