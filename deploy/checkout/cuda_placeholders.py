"""Let PyTorch start without NVIDIA's libraries, which no call uses on a machine without a GPU.

PyTorch from PyPI is built for CUDA. Its libraries name NVIDIA's as needed, so the loader looks for them at
`import torch`, though PyTorch calls only two of them (cudart and CUPTI) before it knows whether there is a GPU. This
program writes one small library with all functions of the others into torch/lib, under each name that is missing. A
call of such a function ends the process with a message. NVIDIA's own libraries take precedence where they are
installed. `setup.sh` runs it with the Python that has PyTorch. An argument names another folder of packages.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

# The names of functions of each library begin with its prefix.
PREFIXES = {
    "libcublas.so": "cublas",
    "libcublasLt.so": "cublasLt",
    "libcudnn.so": "cudnn",
    "libcufft.so": "cufft",
    "libcufile.so": "cuFile",
    "libcusparse.so": "cusparse",
    "libcusparseLt.so": "cusparseLt",
    "libnccl.so": "nccl",
    "libnvrtc.so": "nvrtc",
    "libnvshmem_host.so": "nvshmem",
}
PLACEHOLDER = "libtrimtab_no_cuda.so"

SOURCE = """
#include <stdio.h>
#include <stdlib.h>

static void refuse(const char *function)
{
    fprintf(stderr, "trimtab: %s was called, but NVIDIA's libraries are not installed. "
        "Install them with: make setup TRIMTAB_CUDA=1\\n", function);
    abort();
}
"""


def write_missing(folder: Path) -> None:
    """Write a placeholder for each library that PyTorch in `folder` needs and that is not there; remove the others.

    Ends the process with a message if the C compiler or binutils fail.
    """
    libraries = folder / "torch" / "lib"
    ours = sorted(libraries.glob("libtorch*.so"))
    needed = {name for library in ours for name in _needed(library) if _prefix(name)}
    missing = sorted(name for name in needed if not any(folder.glob(f"nvidia/*/lib/{name}")))
    _remove(libraries)
    if missing:
        _build(sorted({name for library in ours for name in _undefined(library)}), libraries / PLACEHOLDER)
        for name in missing:
            (libraries / name).symlink_to(PLACEHOLDER)


def _prefix(library: str) -> str | None:
    return PREFIXES.get(re.sub(r"(\.\d+)+$", "", library))


def _needed(library: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", _output("readelf", "--dynamic", "--wide", str(library)))


def _undefined(library: Path) -> list[str]:
    """Return the functions that `library` expects from the libraries in PREFIXES."""
    names = re.findall(r"^ +U (\w+)", _output("nm", "--dynamic", "--undefined-only", str(library)), re.MULTILINE)
    return [name for name in names if name.startswith(tuple(PREFIXES.values()))]


def _remove(libraries: Path) -> None:
    for path in libraries.iterdir():
        if path.name == PLACEHOLDER or (path.is_symlink() and path.readlink() == Path(PLACEHOLDER)):
            path.unlink()


def _build(functions: list[str], target: Path) -> None:
    text = SOURCE + "".join(f'void {name}(void) {{ refuse("{name}"); }}\n' for name in functions)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "placeholders.c"
        source.write_text(text)
        _output(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-s", "-o", str(target), str(source))


def _output(*command: str) -> str:
    try:
        environment = {**os.environ, "LC_ALL": "C"}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"cuda_placeholders: {command[0]} failed: {getattr(error, 'stderr', '') or error}")


if __name__ == "__main__":
    write_missing(Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("platlib")))
