"""The gallery: what people run, the component for it, and the gain that was measured.

The data are in `agents/workloads/gallery.yaml`, next to the components that ship with the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trimtab_components.definition import read_needs
from trimtab_components.reader import Reader

_PACKAGE = Path(__file__).resolve().parents[1]
# In a wheel within the package (hatch_build.py), in a checkout next to it.
_PLACES = (_PACKAGE / "_built", _PACKAGE.parent)

# A text for people, by language.
Text = Mapping[str, str]


class Evidence(StrEnum):
    """How the gain of an entry is known."""

    PROVEN = "proven"  # by a study
    NO_GAIN = "no_gain"  # a study has found no measurable gain
    SETTINGS = "settings"  # measured for settings that a person chose
    UNKNOWN = "unknown"  # not measured yet


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a component needs. `by` says how it is installed: apt or pip."""

    name: str
    by: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A system and the study that tunes it.

    `gain`: by how many percent `measure` fell; `low` and `high`: its 95 % interval, None after a single run. `minutes`:
    the time of the study, None if it was not measured. `study` names the file that `text` is the content of. An empty
    `application` is the first one of the component.
    """

    component: str
    application: str
    study: str
    text: str
    runs: Text
    measure: Text
    settings: Text | None
    evidence: Evidence
    gain: float | None
    low: float | None
    high: float | None
    minutes: int | None
    packages: Sequence[Package]


@dataclass(frozen=True, slots=True)
class Gallery:
    """All entries, and the machine on which their gains were measured."""

    machine: Text
    entries: Sequence[Entry]


@cache
def gallery() -> Gallery:
    """Return the gallery."""
    folder = next(found for place in _PLACES if (found := place / "agents/workloads").is_dir())
    data = yaml.safe_load((folder / "gallery.yaml").read_text(encoding="utf-8"))
    return Gallery(data["machine"], [_entry(folder, one) for one in data["entries"]])


def _entry(folder: Path, one: Mapping[str, Any]) -> Entry:
    component, study = one["component"], one.get("study", "study.yml")
    gain, low, high = [*one.get("gain", ()), None, None, None][:3]
    if gain is None:
        evidence = Evidence.UNKNOWN
    elif "settings" in one:
        evidence = Evidence.SETTINGS
    else:
        evidence = Evidence.PROVEN if gain else Evidence.NO_GAIN
    text = (folder / component / study).read_text(encoding="utf-8")
    return Entry(
        component=component,
        application=yaml.safe_load(text).get("application", ""),
        study=study,
        text=text,
        runs=one["runs"],
        measure=one["measure"],
        settings=one.get("settings"),
        evidence=evidence,
        gain=gain,
        low=low,
        high=high,
        minutes=one.get("minutes"),
        packages=_packages(folder / component / "component.yaml"),
    )


def _packages(file: Path) -> list[Package]:
    top = Reader(file.name).parse(file.read_text(encoding="utf-8"))
    needs = read_needs(top) if top else ()
    return list(dict.fromkeys(Package(one.package, "pip" if one.kind == "module" else "apt") for one in needs))
