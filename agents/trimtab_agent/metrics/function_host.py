"""`python -I function_host.py REQUEST ANSWER`: calls a metric function in a process of its own, which it may crash or
hang as it likes.

REQUEST is a JSON file: file, function, stdout, stderr, work, seconds, params. ANSWER gets {"value": number} or
{"error": text}.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Loads the function's file and calls it with the run."""
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
        return {"value": None if value is None else float(value)}
    except Exception as error:  # noqa: BLE001  whatever the function raises is its answer
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Reads the request and writes the answer."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(request)), encoding="utf-8")


if __name__ == "__main__":
    main()
