"""Generate the gRPC code of the service, the SDK and the agent from the .proto files in this folder.

Each of the three gets its own copy in a git-ignored `_gen` package, so that none needs another at run time.
`make proto` runs this program. It does nothing if the copies are newer than their sources.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# By package: the protocol packages that it needs.
TARGETS = {
    "service": ("tuning", "agent", "identity", "matching", "errordetails"),
    "sdk/trimtab": ("tuning", "identity", "matching", "errordetails", "vizier"),
    "agents/trimtab_agent": ("tuning", "agent", "matching", "errordetails"),
}
PACKAGE_NAMES = {"service": "service._gen", "sdk/trimtab": "trimtab._gen", "agents/trimtab_agent": "trimtab_agent._gen"}


def generate(into: Path) -> None:
    """Compile every .proto file into `into`, with type stubs for messages and services."""
    include = Path(protoc.__file__).parent / "_proto"
    sources = sorted(str(path) for path in HERE.rglob("*.proto"))
    arguments = ["protoc", f"-I{HERE}", f"-I{include}"]
    arguments += [f"--{kind}_out={into}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    # The plug-ins are in the folder of this Python, which need not be in PATH.
    programs = Path(sys.executable).parent
    arguments += [f"--plugin=protoc-gen-{kind}={programs / f'protoc-gen-{kind}'}" for kind in ("mypy", "mypy_grpc")]
    if protoc.main([*arguments, *sources]) != 0:
        sys.exit("protoc failed with the message above")


def install(generated: Path, target: str, packages: tuple[str, ...]) -> None:
    """Copy the modules of `packages` into the flat `_gen` package of `target`, with adapted imports."""
    package = PACKAGE_NAMES[target]
    folder = ROOT / target / "_gen"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    for name in packages:
        # OSS Vizier's package is not one of Trimtab's, and has no version.
        source = generated / name if name == "vizier" else generated / "trimtab" / name / "v1"
        for path in sorted(source.iterdir()):
            text = path.read_text()
            text = re.sub(r"^from vizier import", f"from {package} import", text, flags=re.MULTILINE)
            text = re.sub(r"^import vizier\.(\w+)( as .*)?$", rf"from {package} import \1\2", text, flags=re.MULTILINE)
            text = re.sub(r"\bvizier\.(vizier_pb2)", r"\1", text)
            text = re.sub(r"^from trimtab\.\w+\.v1 import", f"from {package} import", text, flags=re.MULTILINE)
            # The type stubs import complete paths: `import trimtab.x.v1.x_pb2` or with `as`
            whole_path = re.compile(r"^import trimtab\.\w+\.v1\.(\w+)( as .*)?$", flags=re.MULTILINE)
            text = whole_path.sub(rf"from {package} import \1\2", text)
            text = re.sub(r"\btrimtab\.\w+\.v1\.(\w+_pb2)", r"\1", text)
            (folder / path.name).write_text(text)


def up_to_date() -> bool:
    """Return whether every copy is newer than every source."""
    newest = max(path.stat().st_mtime for path in [*HERE.rglob("*.proto"), Path(__file__)])
    marks = [ROOT / target / "_gen" / "__init__.py" for target in TARGETS]
    return all(mark.exists() and mark.stat().st_mtime > newest for mark in marks)


def main() -> None:
    """Generate the code unless it is up to date."""
    if up_to_date():
        return
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        for target, packages in TARGETS.items():
            install(Path(folder), target, packages)


if __name__ == "__main__":
    main()
