"""`python -I function_host.py REQUEST ANSWER`: call a metric function in a separate process, which may crash or hang.

REQUEST is a JSON file with file, function, stdout, stderr, work, seconds and params. The program writes {"value":
number} or {"error": text} to ANSWER.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Load the function's file, call the function with the run, and return the answer."""
    file = Path(request["file"])
    sys.path.insert(0, str(file.parent))
    try:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, request["function"])
        run = SimpleNamespace(
            stdout=Path(request["stdout"]).read_text(encoding="utf-8", errors="replace"),
            stderr=Path(request["stderr"]).read_text(encoding="utf-8", errors="replace"),
            work=Path(request["work"]),
            seconds=request["seconds"],
            params=request["params"],
        )
        value = function(run)
        return {"value": value if value is None or isinstance(value, str) else float(value)}
    except Exception as error:  # noqa: BLE001  any exception of the function is its answer
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Read the request and write the answer."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(request)), encoding="utf-8")


if __name__ == "__main__":
    main()
