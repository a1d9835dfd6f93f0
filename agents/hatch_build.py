"""A build hook: the wheel of the agent contains generated code, the workloads and the manual page.

It depends on the reader of component files of the same version.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MANUAL = "trimtab-agent.1"
# What using a workload leaves in its folder.
LEFT_BEHIND = {"source", ".part", "lib", "__pycache__"}


class BuildHook(BuildHookInterface[Any]):
    """Add workloads, manual page and dependency, and refuse to build a wheel without generated code."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill in `build_data`. Raises RuntimeError if the generated code is missing."""
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / "trimtab_agent/_gen/__init__.py").is_file():
            raise RuntimeError(
                "trimtab_agent/_gen is missing: the gRPC code has not been generated. Run `make setup` first."
            )
        build_data["dependencies"].append(f"trimtab-components=={self.metadata.version}")
        for path in sorted((root / "workloads").rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not LEFT_BEHIND.intersection(relative.parts):
                build_data["force_include"][str(path)] = f"trimtab_agent/{relative}"
        if (root / MANUAL).is_file():  # `make wheels` writes it
            build_data["shared_data"][str(root / MANUAL)] = f"share/man/man1/{MANUAL}"
