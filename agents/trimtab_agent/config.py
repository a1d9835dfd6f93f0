"""The agent's settings, checked."""

import ipaddress
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.policy import Policy
from trimtab_agent.runners.base import Runner

logger = logging.getLogger(__name__)

# where trials run
RUNNERS = ("local", "slurm", "ray")


@dataclass(frozen=True)
class Tls:
    """PEM files. `ca`: certificates to trust, those that gRPC brings where there is none; `certificate` and `key`: the
    agent's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Config:
    """How one agent process works. `cache_limit` is in bytes; `tls`: None: the connection is not encrypted.

    `token_file`: None for an agent with a credential of its own; `enrol` is the token with which it gets one.
    """

    server: str
    state: Path
    name: str
    token_file: Path | None = None
    enrol: str | None = None
    slots: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    cache_limit: int = 2 << 30
    tls: "Tls | None" = None
    policy: Policy = field(default_factory=Policy)
    # the administrator's own, for every job of the runner's scheduler
    scheduler_options: tuple[str, ...] = ()


def make_runner(
    name: str,
    scheduler_options: Mapping[str, Sequence[str]],
    *,
    ray_address: str | None = None,
    slots: int = 1,
    cores: int | None = None,
    memory: int = 0,
) -> Runner:
    """The runner of this name, one of `RUNNERS`. The local one keeps this process off its trials' CPUs.

    Args:
        name: which one.
        scheduler_options: the administrator's own for every job, by runner.
        ray_address: of the dashboard; None: as Ray's own command line finds it.
        slots: trials that may run at a time.
        cores: for each of them (runners.cpus.share_out).
        memory: bytes for each of them; 0: no limit.

    Raises:
        ConfigError: this machine or an option does not allow it.
    """
    for scheduler, options in scheduler_options.items():
        if options and name != scheduler:
            raise ConfigError(f"--{scheduler}-option {options[0]!r} has a meaning only with --runner {scheduler}")
    if ray_address is not None and name != "ray":
        raise ConfigError(f"--ray-address {ray_address!r} has a meaning only with --runner ray")
    if name != "local":
        for option, given in (("--trial-cores", cores is not None), ("--trial-memory-mib", memory > 0)):
            if given:
                raise ConfigError(f"{option} has a meaning only with --runner local; {name}'s: --{name}-option")
    own = scheduler_options.get(name, ())
    if name == "slurm":
        from trimtab_agent.runners import slurm, slurm_client

        slurm.check_options(own)
        slurm_client.require_programs()
        return slurm.SlurmRunner(own)
    if name == "ray":
        from trimtab_agent.runners import ray, ray_client

        ray.check_options(own)
        return ray.RayRunner(ray_client.choose_address(ray_address), own)
    from trimtab_agent.runners import cpus
    from trimtab_agent.runners.local import LocalRunner

    shares = cpus.share_out(slots, cores, cpus.cores(cpus.allowed()))
    if shares.warning:
        logger.warning("%s", shares.warning)
    runner = LocalRunner(shares, memory)
    os.sched_setaffinity(0, shares.spare)
    return runner


def choose_tls(
    server: str, wanted: bool, plaintext: bool, ca: Path | None, certificate: Path | None, key: Path | None
) -> Tls | None:
    """How the connection to the server is encrypted: always, unless the server is on this machine or `plaintext`.

    Raises:
        ConfigError: the options contradict each other, or a file is none.
    """
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-cert and --tls-key belong together")
    files = {"--tls-ca": ca, "--tls-cert": certificate, "--tls-key": key}
    for option, path in files.items():
        if path is not None and not path.is_file():
            raise ConfigError(f"{option} {path} is not a file")
    wanted = wanted or any(files.values())
    if plaintext and wanted:
        raise ConfigError("--plaintext contradicts --tls and the options of its files")
    if plaintext or (not wanted and _is_loopback(server)):
        return None
    return Tls(ca, certificate, key)


def _is_loopback(server: str) -> bool:
    host = server.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
