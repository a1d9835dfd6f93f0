"""The agent's settings."""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.logger import Logger
from trimtab_agent.policy import Policy
from trimtab_agent.runners.base import Runner
from trimtab_agent.runners.trial_user import TrialUser
from trimtab_components.metric_definition import ADDRESS

logger = Logger(__name__)

# The names of the runners.
RUNNERS = ("local", "slurm", "ray", "psij")
# Why a runner of a cluster cannot run trials as another user, and what to do.
_ONE_USER = {
    "slurm": "A job of Slurm has one user, so a trial could change what its supervisor reports. Run the agent itself as"
    " a user without rights on the cluster.",
    "psij": "A job of a scheduler has one user, so a trial could change what its supervisor reports. Run the agent"
    " itself as a user without rights on the cluster.",
    "ray": "Ray runs all tasks as the user who has started its nodes. Start them as a user without rights.",
}


@dataclass(frozen=True)
class Tls:
    """PEM files. `ca` has the certificates to trust; without it gRPC's own list counts. `certificate` and `key` are the
    agent's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Prometheus:
    """The Prometheus server for metrics that name none. Both texts may be empty. The token is sent to `url` alone."""

    url: str = ""
    token_file: str = ""

    @classmethod
    def of(cls, url: str | None, token_file: Path | None) -> "Prometheus":
        """Check the options of the command line.

        Raises:
            ConfigError: an option has another form, or there is a token without an address.
        """
        if url is not None and not re.fullmatch(ADDRESS, url):
            raise ConfigError(
                f"--prometheus-url {url!r} is not of the form http://HOST:PORT or https://HOST:PORT, with an optional"
                " path and without a password"
            )
        if token_file is not None and url is None:
            raise ConfigError(f"--prometheus-token-file {token_file} needs --prometheus-url, the address for the token")
        if token_file is not None and not token_file.is_file():
            raise ConfigError(f"--prometheus-token-file {token_file} is not a file")
        return cls(url or "", str(token_file.absolute()) if token_file else "")


NO_PROMETHEUS = Prometheus()
# The folder in --state-dir with the records of live systems.
LIVE_RECORDS = "live"


@dataclass(frozen=True)
class Config:
    """The settings of one agent process. `cache_limit` is in bytes. `tls` None means an unencrypted connection. An
    agent without slots runs no trials: it only answers submission hosts.

    `token_file` is None for an agent with its own credential. `enrol` is a token for the enrolment.
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
    # The administrator's options for every job of the runner's scheduler.
    scheduler_options: tuple[str, ...] = ()
    # The socket on which submission hosts ask for proven settings; None: application matching is off.
    match_socket: Path | None = None
    prometheus: Prometheus = NO_PROMETHEUS

    @property
    def live_records(self) -> Path:
        """The folder of the records of live systems (supervisor.switch)."""
        return self.state / LIVE_RECORDS

    def described_rules(self) -> dict[str, str]:
        """Return the rules of the policy that the service shows to people, as text by name."""
        matching = self.policy.matching.describe() if self.match_socket else {}
        return self.policy.describe() | matching


def make_runner(
    name: str,
    scheduler_options: Mapping[str, Sequence[str]],
    *,
    ray_address: str | None = None,
    psij_executor: str | None = None,
    shared: Path = Path(),
    slots: int = 1,
    cores: int | None = None,
    memory: int = 0,
    user: TrialUser | None = None,
) -> Runner:
    """Return a runner. The local runner keeps this process off the CPUs of its trials.

    Args:
        name: one of `RUNNERS`.
        scheduler_options: the administrator's options for every job, by runner.
        ray_address: address of the Ray dashboard; None: found as Ray's own command line finds it.
        psij_executor: the scheduler that PSI/J calls.
        shared: a folder that the nodes share, for the files of PSI/J.
        slots: number of trials at the same time.
        cores: cores of each trial (see runners.cpus.share_out).
        memory: memory limit of each trial in bytes; 0: no limit.
        user: the user of the trials; None: the agent's own.

    Raises:
        ConfigError: an option does not fit the runner, or this machine does not allow the runner.
    """
    for scheduler, options in scheduler_options.items():
        if options and name != scheduler:
            raise ConfigError(f"--{scheduler}-option {options[0]!r} is only valid with --runner {scheduler}")
    if ray_address is not None and name != "ray":
        raise ConfigError(f"--ray-address {ray_address!r} is only valid with --runner ray")
    if (psij_executor is not None) != (name == "psij"):
        raise ConfigError("--runner psij and --psij-executor NAME, such as pbs, lsf or flux, need each other")
    if name != "local":
        for option, given in (("--trial-cores", cores is not None), ("--trial-memory-mib", memory > 0)):
            if given:
                raise ConfigError(f"{option} is only valid with --runner local; with {name}, use --{name}-option")
        if user is not None:
            raise ConfigError(f"--trial-user {user.name} is only valid with --runner local. {_ONE_USER[name]}")
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
    if name == "psij":
        from trimtab_agent.runners import psij

        psij.check_options(own)
        return psij.PsijRunner(psij.connect(psij_executor or "", shared), own)
    from trimtab_agent.runners import cpus
    from trimtab_agent.runners.local import LocalRunner

    shares = cpus.share_out(slots, cores, cpus.cores(cpus.allowed()))
    if shares.warning:
        logger.warning("trials disturb each other's timing", reason=shares.warning)
    runner = LocalRunner(shares, memory, user)
    os.sched_setaffinity(0, shares.spare)
    return runner


def choose_tls(
    server: str, wanted: bool, plaintext: bool, ca: Path | None, certificate: Path | None, key: Path | None
) -> Tls | None:
    """Return how the connection is encrypted. It is, unless the server is on this machine or `plaintext` is set.

    Raises:
        ConfigError: the options contradict each other, or a file does not exist.
    """
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-cert and --tls-key must be given together")
    files = {"--tls-ca": ca, "--tls-cert": certificate, "--tls-key": key}
    for option, path in files.items():
        if path is not None and not path.is_file():
            raise ConfigError(f"{option} {path} is not a file")
    wanted = wanted or any(files.values())
    if plaintext and wanted:
        raise ConfigError("--plaintext contradicts --tls, --tls-ca, --tls-cert and --tls-key")
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
    """Return the default state directory."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(base) / "trimtab-agent"


def default_name() -> str:
    """Return the default name: this machine's host name."""
    return socket.gethostname()


def parse_labels(items: Sequence[str]) -> dict[str, str]:
    """Parse labels of the form KEY=VALUE.

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
    """Return the address HOST:PORT if it is valid.

    Raises:
        ConfigError: it has another form.
    """
    host, _, port = text.rpartition(":")
    if not host or "/" in text or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"--server {text!r} is not of the form HOST:PORT")
    return text
