"""The tables of the page "What do you run?", from the gallery that the console shows as well."""

from __future__ import annotations

from docs._ext.generated.markdown import table
from service.planning.gallery import Entry, Evidence, gallery

# The pages of the components in the site.
WORKLOADS = "../reference/workloads"


def studied() -> str:
    """Return the systems whose gain a study has looked for."""
    rows = [
        (*_beginning(one), one.minutes, _change(one), "proven" if one.gain else "no measurable gain")
        for one in gallery().entries
        if one.evidence in (Evidence.PROVEN, Evidence.NO_GAIN)
    ]
    return table(("you run", "component, study", "packages", "minutes", "less", "verdict"), rows)


def chosen() -> str:
    """Return the systems without the result of a study."""
    rows = [
        (*_beginning(one), one.settings["en"] if one.settings else "", _change(one))
        for one in gallery().entries
        if one.evidence in (Evidence.SETTINGS, Evidence.UNKNOWN)
    ]
    return table(("you run", "component", "packages", "settings", "less"), rows)


def machine() -> str:
    """Return the machine of all measurements."""
    return f"The machine has {gallery().machine['en']}.\n"


def _beginning(one: Entry) -> tuple[str, str, str]:
    file = "" if one.study == "study.yml" else f", `{one.study}`"
    packages = ", ".join(f"{package.name} (pip)" if package.by == "pip" else package.name for package in one.packages)
    return one.runs["en"], f"[{one.component}]({WORKLOADS}/{one.component}.md){file}", packages


def _change(one: Entry) -> str:
    if one.gain is None:
        return "not measured yet"
    interval = "" if one.low is None else f" ({one.low:g} to {one.high:g})"
    return f"{one.measure['en']}: {one.gain:g} %{interval}"
