"""The libraries that answer for NVIDIA's, with a PyTorch of one function."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "deploy" / "checkout" / "cuda_placeholders.py"
CALLER = "int cublasCreate_v2(void); int create(void) { return cublasCreate_v2(); } int one(void) { return 1; }"


def build(target: Path, source: str, *options: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    text = target.with_suffix(".c")
    text.write_text(source)
    # As PyTorch's libraries, it finds all functions when it is loaded.
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", target, text, *options], check=True)


@pytest.fixture
def packages(tmp_path: Path, programs_start: None) -> Path:
    """A folder of packages whose PyTorch needs a cuBLAS that is not installed."""
    libraries = tmp_path / "torch" / "lib"
    cublas = tmp_path / "built" / "libcublas.so.13"
    build(cublas, "int cublasCreate_v2(void) { return 7; }", "-Wl,-soname,libcublas.so.13")
    rpath = "-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib:$ORIGIN,--disable-new-dtags"
    build(libraries / "libtorch_cuda.so", CALLER, str(cublas), rpath)
    return tmp_path


def call(packages: Path, function: str) -> "subprocess.CompletedProcess[str]":
    library = packages / "torch" / "lib" / "libtorch_cuda.so"
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).{function}())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def write_missing(packages: Path) -> None:
    subprocess.run([sys.executable, PROGRAM, packages], check=True)


def test_a_library_that_is_missing_is_replaced_and_no_function_of_it_works(packages: Path) -> None:
    assert "libcublas.so.13: cannot open shared object file" in call(packages, "one").stderr
    write_missing(packages)
    assert call(packages, "one").stdout == "1\n"
    refused = call(packages, "create")
    assert refused.returncode < 0
    assert "cublasCreate_v2 was called" in refused.stderr
    assert "TRIMTAB_CUDA=1" in refused.stderr


def test_a_library_that_is_installed_takes_precedence(packages: Path) -> None:
    write_missing(packages)
    installed = packages / "nvidia" / "cu13" / "lib" / "libcublas.so.13"
    installed.parent.mkdir(parents=True)
    (packages / "built" / "libcublas.so.13").rename(installed)
    assert call(packages, "create").stdout == "7\n"
    write_missing(packages)
    assert [path.name for path in (packages / "torch" / "lib").glob("lib*.so*")] == ["libtorch_cuda.so"]


def test_a_second_run_changes_nothing(packages: Path) -> None:
    write_missing(packages)
    before = sorted(path.name for path in (packages / "torch" / "lib").iterdir())
    write_missing(packages)
    assert sorted(path.name for path in (packages / "torch" / "lib").iterdir()) == before
    assert call(packages, "one").stdout == "1\n"
