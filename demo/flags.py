"""The compiler flags that a configuration adds to the default's build command."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.preparation import prepare
from trimtab_components.schema import Component, Scalar

BUILD_CACHE_BYTES = 2**30


def added_flags(
    file: Path, application: str, metric: str, state: Path, configuration: Mapping[str, Scalar]
) -> list[str]:
    """Return the flags of a configuration, as the agent whose state is in the folder `state` passes them to GCC."""
    component = load(file, Generator(state / "generated"))
    default, changed = (_build_command(component, application, metric, state, values) for values in ({}, configuration))
    return [item for item in changed if item not in default]


def _build_command(
    component: Component, application: str, metric: str, state: Path, configuration: Mapping[str, Scalar]
) -> list[str]:
    with TemporaryDirectory(prefix="trimtab-demo-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        build = prepare(
            component,
            application,
            dict(configuration),
            title="flags",
            required=[metric],
            timeout=0,
            work=work,
            cache=state / "builds",
            cache_limit=BUILD_CACHE_BYTES,
        ).build
    assert build is not None
    return [item for item in build.commands[0] if item != f"{build.entry}/work"]
