"""The user of trials, if it is not the agent's: it can read nothing of the agent's state.

The agent is root then. The folders on the way to a trial's work folder can be passed and not listed; all files of the
agent belong to root and are private. The supervisor stays root: it only starts the commands of a trial as this user.
"""

import os
import pwd
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.files import give
from trimtab_agent.runners.base import JobSpec

# The permissions of a folder that others may pass and not list.
PASSABLE = 0o711
PRIVATE = 0o700
# What the agent itself creates is private.
UMASK = 0o077
OPTION = "--trial-user"


@dataclass(frozen=True)
class TrialUser:
    """A user with its groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @classmethod
    def find(cls, name: str) -> "TrialUser":
        """Return a user under which this process can start trials.

        Raises:
            ConfigError: there is no such user, or this process may not start programs as this user.
        """
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            raise ConfigError(f"{OPTION} {name!r} does not exist. Create it: useradd --system {name}") from None
        if os.geteuid() != 0:
            raise ConfigError(f"{OPTION} {name} needs an agent that runs as root. Start it as root, or leave it out.")
        if account.pw_uid == 0:
            raise ConfigError(f"{OPTION} {name} is the agent's own user. Name a user without rights.")
        groups = tuple(os.getgrouplist(name, account.pw_gid))
        found = cls(name, account.pw_uid, account.pw_gid, groups, account.pw_dir)
        try:
            found._run("true")
        except (OSError, subprocess.SubprocessError) as error:
            raise ConfigError(f"{OPTION} {name}: this process may not start programs as that user: {error}") from None
        return found

    def open_state(self, state: Path, components: Iterable[Path]) -> None:
        """Let trials reach their folders below the state directory, and nothing else in it.

        From now on this process creates private files. Raises ConfigError if the user cannot reach a folder.
        """
        os.umask(UMASK)
        (state / "builds").mkdir(exist_ok=True)
        for folder in state.iterdir():
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(PASSABLE if folder.name in ("leases", "builds") else PRIVATE)
        state.chmod(PASSABLE)
        for folder in (state / "leases", *components):
            try:
                self._run('cd "$0"', str(folder))
            except subprocess.CalledProcessError:
                raise ConfigError(
                    f"{OPTION} {self.name}: that user cannot reach {folder}. Choose another folder, or allow others to"
                    " pass it and the folders above it (chmod o+x)."
                ) from None

    def own(self, folder: Path, spec: JobSpec) -> JobSpec:
        """Give the work folder of a job to the user, and return the job with this user."""
        folder.chmod(PASSABLE)
        give(spec.work, self.uid, self.gid)
        build = spec.build and replace(spec.build, env=self._environment(spec.build.env, spec.build.own_env))
        return replace(
            spec,
            user={"uid": self.uid, "gid": self.gid, "groups": list(self.groups)},
            env=self._environment(spec.env, spec.own_env),
            base_env=self._environment(spec.base_env, ()),
            build=build,
        )

    def _environment(self, env: Mapping[str, str], own: Collection[str]) -> dict[str, str]:
        """Return an environment of the user; variables that the component sets stay."""
        mine = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}
        return {**env, **{name: text for name, text in mine.items() if name not in own}}

    def _run(self, script: str, *arguments: str) -> None:
        subprocess.run(
            ["/bin/sh", "-c", script, *arguments],
            user=self.uid,
            group=self.gid,
            extra_groups=self.groups,
            cwd="/",
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
