"""The agent's settings, checked."""

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.runners.base import Runner

logger = logging.getLogger(__name__)

# where trials run
RUNNERS = ("local", "slurm")


@dataclass(frozen=True)
class Config:
    """How one agent process works. `cache_limit` is in bytes; `ca_file` only has a meaning with `tls`."""

    server: str
    token_file: Path
    state: Path
    name: str
    slots: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    cache_limit: int = 2 << 30
    tls: bool = False
    ca_file: Path | None = None

    def token(self) -> str:
        """The token as the file has it now: an administrator may replace it while the agent runs.

        Raises:
            ConfigError: the file cannot be read or is empty.
        """
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {self.token_file} cannot be read: {error}") from None
        if not token or any(ord(character) <= 32 or ord(character) > 126 for character in token):
            raise ConfigError(f"--token-file {self.token_file} must hold one token, printable and without spaces")
        return token


def make_runner(
    name: str, slurm_options: Sequence[str], *, slots: int = 1, cores: int | None = None, memory: int = 0
) -> Runner:
    """The runner of this name, one of `RUNNERS`. The local one keeps this process off its trials' CPUs.

    Args:
        name: which one.
        slurm_options: for sbatch.
        slots: trials that may run at a time.
        cores: for each of them (runners.cpus.share_out).
        memory: bytes for each of them; 0: no limit.

    Raises:
        ConfigError: this machine or an option does not allow it.
    """
    if name == "slurm":
        for option, given in (("--trial-cores", cores is not None), ("--trial-memory-mib", memory > 0)):
            if given:
                raise ConfigError(f"{option} has a meaning only with --runner local; Slurm's: --slurm-option")
        from trimtab_agent.runners import slurm, slurm_client

        slurm.check_options(slurm_options)
        slurm_client.require_programs()
        return slurm.SlurmRunner(slurm_options)
    if slurm_options:
        raise ConfigError(f"--slurm-option {slurm_options[0]!r} has a meaning only with --runner slurm")
    from trimtab_agent.runners import cpus
    from trimtab_agent.runners.local import LocalRunner

    shares = cpus.share_out(slots, cores, cpus.cores(cpus.allowed()))
    if shares.warning:
        logger.warning("%s", shares.warning)
    runner = LocalRunner(shares, memory)
    os.sched_setaffinity(0, shares.spare)
    return runner


def default_state() -> Path:
    """Where the agent keeps its state unless it is told otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(base) / "trimtab-agent"


def default_name() -> str:
    """The machine's name."""
    return socket.gethostname()


def parse_labels(items: Sequence[str]) -> dict[str, str]:
    """Labels from their form KEY=VALUE.

    Raises:
        ConfigError: an item has another form.
    """
    labels = {}
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise ConfigError(f"--label {item!r} is not of the form KEY=VALUE")
        labels[key] = value
    return labels


def parse_server(text: str) -> str:
    """HOST:PORT, as gRPC takes it.

    Raises:
        ConfigError: it is something else.
    """
    host, _, port = text.rpartition(":")
    if not host or "/" in text or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"--server {text!r} is not of the form HOST:PORT")
    return text
