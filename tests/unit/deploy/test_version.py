"""The version number, which stands in one place."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import trimtab
from trimtab_agent.version import VERSION

ROOT = Path(__file__).resolve().parents[3]


def test_all_distributions_have_the_version_of_the_project() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    reader = version("trimtab-components")
    assert {trimtab.__version__, VERSION, version("trimtab-service"), reader} == {wanted}
