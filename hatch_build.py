"""A build hook: the wheel of the service contains the built console and documentation, and the gallery of components.

It depends on the reader of component files of the same version.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# By folder of the checkout: whether a wheel must contain it. The wheel has it in service/_built, under the same path.
BUILT = {"web/dist": True, "docs/_site": False}


# The gallery: what people run, with the component and study files of each.
GALLERY = ("agents/workloads/gallery.yaml", "agents/workloads/*/component.yaml", "agents/workloads/*/*.yml")


class BuildHook(BuildHookInterface[Any]):
    """Add built folders, the gallery and the dependency to the wheel, and refuse to build an incomplete one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill in `build_data`. Raises RuntimeError if generated code or the console is missing."""
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / "service/_gen/__init__.py").is_file():
            raise RuntimeError("service/_gen is missing: the gRPC code has not been generated. Run `make setup` first.")
        build_data["dependencies"].append(f"trimtab-components=={self.metadata.version}")
        for file in (found for pattern in GALLERY for found in sorted(root.glob(pattern))):
            build_data["force_include"][str(file)] = f"service/_built/{file.relative_to(root)}"
        for folder, needed in BUILT.items():
            if (root / folder / "index.html").is_file():
                build_data["force_include"][str(root / folder)] = f"service/_built/{folder}"
            elif needed:
                raise RuntimeError(
                    f"{folder}/index.html is missing: the console has not been built."
                    " Install Node.js 20.19 or newer and run `make setup` first."
                )
