"""Read optimisation flags from the installed GCC and print them as the parameters of a component, as JSON.

    python3 flags.py tree-vectorize vect-cost-model param:max-unroll-times march:native

A name is the name of an `-f` option without its `-f` (a boolean or an enumeration, as the compiler says), of a
`--param` after `param:`, or a value of `-march` after `march:`. Defaults are the compiler's own at -O2, so that the
default configuration is plain `gcc -O2`. Parameters that this compiler does not know, or cannot compile with, are left
out with a note on standard error. The compiler is `gcc`, or the one that the environment variable CC names.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# GCC prints no upper end for most of its --params, and a range of a million for some. These get powers of two around
# the default.
SPAN = 8
# The largest range of which every value is offered.
WHOLE_RANGE = 64


class CompilerError(Exception):
    """The compiler is missing, or is not GCC."""


def run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the compiler with messages in English. Raise CompilerError if it cannot be started."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise CompilerError(f"cannot run the compiler {argv[0]!r}: {error.strerror}; install gcc or set CC") from error


def listing(compiler: str, kind: str) -> dict[str, tuple[str, str]]:
    """Return what `-Q --help=KIND` says at -O2: name -> (allowed values, current value).

    The allowed values are "" for a boolean, "[a|b|c]" for an enumeration, "<lo,hi>" for a range.
    """
    answer = run([compiler, "-Q", "-O2", f"--help={kind}"])
    if answer.returncode != 0:
        raise CompilerError(
            f"{compiler!r} does not list its {kind}: is it clang under the name of gcc? Set CC to a GCC"
        )
    options: dict[str, tuple[str, str]] = {}
    for line in answer.stdout.splitlines():
        match = re.fullmatch(r"\s+(?:-f|--param=)([\w-]+)=?(\[[^\]]*\]|<[^>]*>)?\s+(\S+)\s*", line)
        # An option with values may have a second line for its boolean form, which does not list the values.
        if match and not (match[1] in options and match[2] is None):
            options[match[1]] = (match[2] or "", match[3])
    return options


def boolean(name: str, value: str) -> dict[str, object]:
    """Return a parameter for a flag that is on or off."""
    return {
        "type": "boolean",
        "default": value == "[enabled]",
        "omit_default": True,
        "flag": {"on": f"-f{name}", "off": f"-fno-{name}"},
    }


def enumeration(name: str, allowed: str, value: str) -> dict[str, object]:
    """Return a parameter for a flag with one of several values; `default`: the compiler's choice if it names none."""
    values = allowed.strip("[]").split("|")
    if value not in values:
        value = "default"
        values.insert(0, value)
    return {
        "type": "categorical",
        "values": values,
        "default": value,
        "omit_default": True,
        "flag": f"-f{name}={{value}}",
    }


def parameter(name: str, allowed: str, value: str) -> dict[str, object]:
    """Return a parameter for a `--param`: its whole range if that is small, else powers of two around the default."""
    default = int(value)
    ends = re.fullmatch(r"<(-?\d+),(-?\d+)>", allowed)
    low, high = (int(ends[1]), int(ends[2])) if ends else (0, sys.maxsize)
    if high - low <= WHOLE_RANGE:
        values = {*range(low, high + 1), default}
    else:
        scale, steps = max(default, 1), range(-SPAN.bit_length() + 1, SPAN.bit_length())
        around = {round(scale * 2.0**step) for step in steps}
        values = {point for point in around if low <= point <= high} | {default}
    return {
        "type": "ordinal",
        "values": sorted(values),
        "default": default,
        "omit_default": True,
        "flag": f"--param={name}={{value}}",
    }


def architecture(name: str) -> dict[str, object]:
    """Return a parameter that compiles for an architecture, which may allow wider vectors than the default one."""
    return {"type": "boolean", "default": False, "flag": {"on": f"-march={name}"}}


def spellings(described: dict[str, object]) -> list[str]:
    """Return every argument by which this parameter may reach the compiler, except its default's."""
    flag, values = described["flag"], described.get("values")
    if isinstance(flag, dict):
        return list(flag.values())
    assert isinstance(flag, str)
    assert isinstance(values, list)
    return [flag.format(value=value) for value in values if value != described["default"]]


def describe(compiler: str, names: list[str]) -> dict[str, dict[str, object]]:
    """Return the parameters for `names`, in their order, without the ones that this compiler cannot use."""
    optimizers, params = listing(compiler, "optimizers"), listing(compiler, "params")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("int main(void) { return 0; }\n")

        def usable(arguments: list[str]) -> bool:
            return run([compiler, "-O2", *arguments, "-c", str(source), "-o", os.devnull]).returncode == 0

        for name in names:
            kind, _, rest = name.rpartition(":")
            known_as = f"march-{rest}" if kind == "march" else rest
            if kind == "march":
                described = architecture(rest)
            elif kind == "param" and rest in params:
                described = parameter(rest, *params[rest])
            elif kind == "" and rest in optimizers:
                allowed, value = optimizers[rest]
                described = enumeration(rest, allowed, value) if allowed.startswith("[") else boolean(rest, value)
            else:
                print(f"left out: {name}: unknown to this {compiler}", file=sys.stderr)
                continue
            if all(usable([spelling]) for spelling in spellings(described)):
                found[known_as] = described
            else:
                print(f"left out: {name}: this {compiler} does not compile with it", file=sys.stderr)
    return found


def main() -> int:
    """Print the parameters named on the command line; return 1 if there is no GCC."""
    compiler = os.environ.get("CC", "gcc")
    try:
        parameters = describe(compiler, sys.argv[1:])
    except CompilerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    json.dump({"parameters": parameters}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
