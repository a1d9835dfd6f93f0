"""Install, update and remove components that ship with the agent, as people ask for it in the service.

The key `install` of the policy names the components; without it nothing is installed. The service sends only a name,
and the agent installs its own copy. A copy has a folder of its own in `.shipped` of the components' folder, and the
component is a link to it, so that nothing of an administrator is ever changed.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trimtab_agent import needs, shipped
from trimtab_agent.components.loader import load
from trimtab_agent.errors import AgentError, ComponentError, ConfigError
from trimtab_agent.installed import Installed
from trimtab_agent.policy import Policy

STORE = ".shipped"
# What using a component leaves in its folder, which is no part of it.
LEFT_BEHIND = ("source", ".part", "__pycache__")


@dataclass(frozen=True)
class Installable:
    """A component that may be installed. `version` is the agent's; `installed` is the installed one or ""."""

    name: str
    version: str
    installed: str


class OrderError(AgentError):
    """An order is not carried out. `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Installer:
    """Changes the folder of the components."""

    def __init__(self, policy: Policy, installed: Installed) -> None:
        self._policy = policy
        self._installed = installed
        self._folder = installed.location.absolute()

    def components(self) -> list[Installable]:
        """Return what may be installed. A component whose sources a person must prepare first is not among it."""
        return [
            Installable(name, version(folder), self._version(name))
            for name, folder in shipped.workloads().items()
            if self._policy.may_install(name) and not (folder / "prepare.py").is_file()
        ]

    def install(self, name: str, *, busy: bool) -> None:
        """Install the agent's version of a component, or replace the installed version by it.

        `busy`: whether a trial of the component runs. Raises OrderError.
        """
        source = self._source(name)
        now, before = version(source), self._version(name)
        if now == before:
            return
        place = self._folder / name
        if not before and (name in self._installed.components or os.path.lexists(place)):
            raise OrderError(
                "component_exists", f"the administrator has installed a component {name!r} there, which is kept"
            )
        _expect_idle(name, busy)
        wanted = shipped.needs(source)
        if absent := needs.missing(wanted):
            commands = "; ".join(needs.commands(absent))
            raise OrderError("packages_missing", f"packages are missing on that machine: {commands}")
        copy = self._store(name, now)
        try:
            _copy(source, copy)
            self._expect_usable(copy / name / "component.yaml")
            _link(place, Path(STORE, copy.name, name))
        except (OSError, OrderError) as error:
            shutil.rmtree(copy, ignore_errors=True)
            raise error if isinstance(error, OrderError) else _not_writable(error) from None
        if before:
            shutil.rmtree(self._store(name, before), ignore_errors=True)

    def remove(self, name: str, *, busy: bool) -> None:
        """Remove a component that was installed here; `busy` as in `install`. Raises OrderError."""
        self._source(name)
        before = self._version(name)
        if not before:
            return
        _expect_idle(name, busy)
        try:
            (self._folder / name).unlink()
        except OSError as error:
            raise _not_writable(error) from None
        shutil.rmtree(self._store(name, before), ignore_errors=True)

    def _source(self, name: str) -> Path:
        if name not in {one.name for one in self.components()}:
            raise OrderError(
                "not_installable",
                f"component {name!r} may not be installed there (key 'install' of the agent's policy)",
            )
        if not self._folder.is_dir() or (self._folder / "component.yaml").exists():
            raise OrderError(
                "no_components_folder", f"{self._folder} is one component. Give --components a folder of components"
            )
        return shipped.workload(name)

    def _version(self, name: str) -> str:
        """Return the installed version, which the link names; "" without a link of this module."""
        try:
            parts = (self._folder / name).readlink().parts
        except OSError:
            return ""
        prefix = f"{name}-"
        if len(parts) != 3 or (parts[0], parts[2]) != (STORE, name) or not parts[1].startswith(prefix):
            return ""
        return parts[1].removeprefix(prefix)

    def _store(self, name: str, version: str) -> Path:
        return self._folder / STORE / f"{name}-{version}"

    def _expect_usable(self, file: Path) -> None:
        """Raise OrderError for a component that cannot be loaded there, or that the policy would not offer."""
        try:
            component = load(file, self._installed.generator)
            self._policy.offered({component.name: component})
        except ComponentError as error:
            raise OrderError("invalid_component", str(error)) from None
        except ConfigError as error:
            raise OrderError("forbidden_by_policy", str(error)) from None


def _expect_idle(name: str, busy: bool) -> None:
    if busy:
        raise OrderError("component_in_use", f"a trial of component {name!r} runs there. Try again after it")


def _not_writable(error: OSError) -> OrderError:
    return OrderError("folder_not_writable", f"the folder of the components cannot be changed: {error}")


@cache
def version(folder: Path) -> str:
    """Return the version of a component that ships: a digest of its files and of the modules that components share."""
    sha = hashlib.sha256()
    for path in _files(folder):
        sha.update(f"{path.relative_to(folder.parent)}\0".encode())
        sha.update(hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()[:12]


def _files(folder: Path) -> Sequence[Path]:
    own = (path for path in folder.rglob("*") if path.is_file() and not set(LEFT_BEHIND) & set(path.parts))
    return sorted([*own, *folder.parent.glob("*.py")])


def _copy(source: Path, target: Path) -> None:
    """Write a component, next to the modules that components share."""
    shutil.rmtree(target, ignore_errors=True)
    for path in _files(source):
        place = target / path.relative_to(source.parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


def _link(place: Path, target: Path) -> None:
    """Make `place` a link to `target`, at once also in place of an earlier link."""
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(place)
