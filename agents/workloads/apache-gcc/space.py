"""Print the component's parameters as JSON: the optimisation level, and flags as the installed GCC has them.

    python3 space.py inline-functions vect-cost-model param:max-inline-insns-auto march:x86-64-v3

The names have the form that `flags.py` of gcc-flags reads. Here each flag has one more value, which is the default:
`level` leaves the flag to the optimisation level. A configuration with that value everywhere is a plain -O0, -O1, -O2,
-O3, -Os or -Ofast.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent
READER = FOLDER.parent / "gcc-flags" / "flags.py"
LEVELS = ("O0", "O1", "O2", "O3", "Os", "Ofast")
LEVEL, DEFAULT_LEVEL, OF_LEVEL = "opt-level", "O2", "level"


def reader() -> ModuleType:
    """Return the module that reads the compiler's flags."""
    spec = importlib.util.spec_from_file_location("gcc_flags", READER)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def with_level(name: str, described: dict[str, object]) -> dict[str, object]:
    """Return the parameter with the value `level`. A parameter that has only an `on` form does not change."""
    flag, values = described["flag"], described.get("values")
    if isinstance(flag, dict):
        if "off" not in flag:
            return described
        flag, values = "-f{value}", [name, f"no-{name}"]
    assert isinstance(values, list)
    # flags.py writes `default` for the compiler's own choice if that is none of the values
    texts = [str(value) for value in values if value != "default"]
    return {
        "type": "categorical",
        "values": [OF_LEVEL, *texts],
        "default": OF_LEVEL,
        "omit_default": True,
        "flag": flag,
    }


def main() -> int:
    """Print the parameters named on the command line; return 1 if there is no source to tune or no GCC."""
    if not (FOLDER / "source" / "provenance.json").is_file():
        print(f"error: no source of Apache httpd: run python3 {FOLDER / 'prepare.py'}", file=sys.stderr)
        return 1
    if not READER.is_file():
        print(f"error: {READER} is missing: apache-gcc and gcc-flags must be in the same folder", file=sys.stderr)
        return 1
    flags = reader()
    try:
        described = flags.describe(os.environ.get("CC", "gcc"), sys.argv[1:])
    except flags.CompilerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    level = {"type": "categorical", "values": LEVELS, "default": DEFAULT_LEVEL, "flag": "-{value}"}
    parameters = {name: with_level(name, one) for name, one in described.items()}
    json.dump({"parameters": {LEVEL: level, **parameters}}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
