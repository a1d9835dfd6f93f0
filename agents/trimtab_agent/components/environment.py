"""The environment that programs of a component start from."""

from collections.abc import Mapping


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The agent's own environment without what is the agent's alone: its `TRIMTAB_` settings, a token among them
    perhaps."""
    return {name: value for name, value in environ.items() if not name.startswith("TRIMTAB_")}
