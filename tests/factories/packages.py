"""Packages of other authors as an installer leaves them: a module and a folder with metadata."""

from __future__ import annotations

from pathlib import Path

ENTRY = """
from service.algorithms.base import Cost
from service.algorithms.entry import Entry
from service.core.options import Option

ENTRY = Entry(
    name={name!r},
    doc="Independent draws of another package.",
    cost=Cost.CHEAP,
    uses_history=False,
    implementation="{module}.search:Search",
    options=(Option(name="salt", type="int", default=0, doc="Number that is added to the seed.", min=0),),
)
"""
SEARCH = """
from service.algorithms.designs.sequences import Random


class Search(Random):
    def __init__(self, problem, *, seed, options):
        super().__init__(problem, seed=seed + options["salt"], options={})
"""


def write_package(
    folder: Path, name: str, *, entry: str = ENTRY, search: str = SEARCH, named: str | None = None
) -> None:
    """Write a package with the algorithm `name` into a folder for sys.path.

    `entry`: the text of its module `entry`, which defines ENTRY. `search`: the text of its module with the class
    Search. `named`: the name in the entry, if it differs.
    """
    module = name.replace("-", "_")
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").touch()
    (folder / module / "entry.py").write_text(entry.format(name=named or name, module=module))
    (folder / module / "search.py").write_text(search)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[trimtab.algorithms]\n{name} = {module}.entry:ENTRY\n")
