"""A check of the wheel of the SDK: it contains the generated gRPC code."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface[Any]):
    """Refuse to build a wheel without generated code."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise RuntimeError if the generated code is missing."""
        if version != "editable" and not (Path(self.root) / "trimtab/_gen/__init__.py").is_file():
            raise RuntimeError("trimtab/_gen is missing: the gRPC code has not been generated. Run `make setup` first.")
