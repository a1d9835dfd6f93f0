"""The base environment of a component's programs."""

from collections.abc import Mapping


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's environment without its own `TRIMTAB_` settings, which may include a token."""
    return {name: value for name, value in environ.items() if not name.startswith("TRIMTAB_")}
