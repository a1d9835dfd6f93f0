"""The administrator's policy: what a service may run here. The agent enforces it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trimtab_agent import matching_rules
from trimtab_agent.errors import ConfigError, PolicyError
from trimtab_agent.lease import Lease
from trimtab_agent.matching_rules import MatchingRules
from trimtab_agent.runners import psij_options, ray_options, slurm_options
from trimtab_agent.runners.base import JobSpec
from trimtab_agent.supervisor import hours
from trimtab_components import placeholders
from trimtab_components.live import Live
from trimtab_components.reader import Reader, Table
from trimtab_components.schema import Application, Component

KEYS = (
    "components",
    "batch_scripts",
    "show_commands",
    "trial_user",
    "tenants",
    "studies",
    "environment",
    "limits",
    "slurm",
    "ray",
    "psij",
    "matching",
    "live",
    "install",
)
LIMIT_KEYS = ("trials", "seconds", "artifacts", "artifact_kib")
COMPONENT_KEYS = ("digests", "applications")
LIVE_KEYS = ("studies", "restart", "instances", "hours", "exposure")
PSIJ_KEYS = ("options",)
RAY_KEYS = ("cpus", "gpus", "memory_mib", "resources", "labels")
SLURM_KEYS = ("partitions", "accounts", "qos", "nodes", "time", "options")
# The policy's lists, with the option of sbatch that each limits.
LISTS = {"partitions": "partition", "accounts": "account", "qos": "qos"}
# The policy's numbers for Ray, with the option that each limits.
RAY_NUMBERS = {"cpus": "num-cpus", "gpus": "num-gpus", "memory_mib": "memory"}
# The policy's lists for Ray, with the option whose names each allows.
RAY_LISTS = {"resources": "resources", "labels": "label-selector"}
MIB = 1 << 20
KIB = 1 << 10
# The service's limits: artifacts of a trial, and KiB of each.
MOST_ARTIFACTS = 20
LARGEST_KIB = 2048


@dataclass(frozen=True)
class ComponentRule:
    """The allowed digests and applications; empty means any. A digest has 64 digits."""

    digests: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlurmRules:
    """The limits for Slurm; None means no limit. `time` is in seconds."""

    lists: Mapping[str, tuple[str, ...]]
    nodes: int | None = None
    time: float | None = None
    time_text: str = ""
    options: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RayRules:
    """The limits for Ray, by rule: maximum numbers and allowed names. A missing rule means no limit."""

    most: Mapping[str, int]
    names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class LiveRules:
    """The rules for live systems; None means no limit.

    `restart`: whether a trial may change a parameter that needs a restart. `instances`: how many instances may have
    settings of one trial at the same time. `hours`: when trials run (supervisor.hours). `exposure`: for which share of
    24 hours settings of trials may be in force on an instance.
    """

    studies: tuple[str, ...] | None = None
    restart: bool = False
    instances: int | None = None
    hours: Mapping[str, Any] | None = None
    exposure: float | None = None


@dataclass(frozen=True)
class Policy:
    """An administrator's rules; None means that everything is allowed. Patterns are shell patterns."""

    components: Mapping[str, ComponentRule] | None = None
    batch_scripts: bool = True
    # whether the service may see command lines and variables
    show_commands: bool = True
    # the user of trials; "" means the agent's own
    trial_user: str = ""
    tenants: tuple[str, ...] | None = None
    studies: tuple[str, ...] | None = None
    environment: tuple[str, ...] | None = None
    trials: int | None = None
    seconds: float | None = None
    # maximum number of files of a trial that are sent, and bytes of each
    artifacts: int = 5
    artifact_bytes: int = 1 << 20
    slurm: SlurmRules | None = None
    ray: RayRules | None = None
    # the options of PSI/J that a job may ask for
    psij: tuple[str, ...] | None = None
    # for jobs that other people submit
    matching: MatchingRules = field(default_factory=MatchingRules)
    # without it no live system is touched
    live: LiveRules | None = None
    # which components that ship with the agent people may install from the service; without it none
    install: tuple[str, ...] = ()

    def under(self, runner: str) -> "Policy":
        """Return the policy for this runner, without the rules for other schedulers."""
        slurm, ray, psij = (getattr(self, name) if name == runner else None for name in ("slurm", "ray", "psij"))
        return replace(self, slurm=slurm if runner != "local" else self.slurm, ray=ray, psij=psij)

    def offered(self, components: Mapping[str, Component]) -> dict[str, Component]:
        """Return the components, with the applications of each, that the service may see.

        With rules for matching, jobs of others get settings. Then those applications are seen, too, whose trials are
        refused because of what their component sets: a job is refused such settings with the reason.

        Raises:
            ConfigError: the policy allows none of them.
        """
        found = {}
        refuse = self._refusal if self.matching == MatchingRules() else self._barred
        for name, component in components.items():
            applications = {
                key: application
                for key, application in component.applications.items()
                if refuse(component, key) is None
            }
            if applications:
                found[name] = replace(component, applications=applications)
        if not found and (components or not self.install):
            raise ConfigError(
                f"the policy allows none of the installed components ({', '.join(components) or 'none'}). Add one of "
                "them to its key 'components', or install a component that it allows."
            )
        return found

    def may_install(self, name: str) -> bool:
        """Return whether people may install a component that ships with the agent from the service."""
        return any(fnmatchcase(name, pattern) for pattern in self.install)

    def admit(self, lease: Lease, component: Component, spec: JobSpec, own_options: Sequence[str] = ()) -> JobSpec:
        """Return the job with the limits that it does not mention itself.

        `own_options` are the administrator's options for every job. The policy does not apply to them.

        Raises:
            PolicyError: a rule forbids the job; the message names the rule.
        """
        refusal = self._refusal(component, lease.application or next(iter(component.applications)))
        if refusal is not None:
            raise refusal
        _expect("tenant", lease.tenant, "tenants", self.tenants)
        _expect("study", lease.study, "studies", self.studies)
        if component.live is not None and self.live is not None:
            spec = self._admit_live(self.live, lease, component, component.live, spec)
        names = [*spec.own_env, *(spec.build.own_env if spec.build else ())]
        for name in names:
            _expect("environment variable", name, "environment", self.environment)
        if self.seconds is not None:
            spec = replace(spec, timeout=min(spec.timeout, self.seconds))
        if not self.show_commands:
            spec = replace(spec, log_commands=False)
        if self.slurm is not None:
            spec = self._admit_to_slurm(self.slurm, spec, own_options)
        if self.psij is not None:
            self._expect_of_psij(self.psij, spec.scheduler_options)
        return spec if self.ray is None else self._admit_to_ray(self.ray, spec, own_options)

    def describe(self) -> dict[str, str]:
        """Return the rules that limit something, as text by name."""
        slurm = self.slurm
        lists: dict[str, Sequence[str] | None] = {
            "components": None if self.components is None else list(self.components),
            "tenants": self.tenants,
            "studies": self.studies,
            "environment": self.environment,
            **({f"slurm.{name}": values for name, values in slurm.lists.items()} if slurm else {}),
            "slurm.options": slurm.options if slurm else None,
            "psij.options": self.psij,
            "live.studies": self.live.studies if self.live else None,
            "install": self.install or None,
        }
        limits = {
            "limits.trials": self.trials,
            "limits.seconds": None if self.seconds is None else f"{self.seconds:g}",
            "live.instances": self.live.instances if self.live else None,
            "live.exposure": self.live.exposure if self.live else None,
            "slurm.nodes": slurm.nodes if slurm else None,
            "slurm.time": (slurm.time_text or None) if slurm else None,
        }
        found = {name: ", ".join(values) or "none" for name, values in lists.items() if values is not None}
        found |= {name: f"at most {value}" for name, value in limits.items() if value is not None}
        closed = {"batch_scripts": self.batch_scripts, "show_commands": self.show_commands}
        closed["limits.artifacts"] = self.artifacts > 0
        if self.live is not None and self.live.hours is not None:
            found["live.hours"] = self.live.hours["text"]
        return found | {name: "none" for name, allowed in closed.items() if not allowed}

    def _admit_live(self, rules: LiveRules, lease: Lease, component: Component, live: Live, spec: JobSpec) -> JobSpec:
        _expect("study", lease.study, "live.studies", rules.studies)
        for name in live.restart:
            value = lease.params.get(name, component.parameters[name].default)
            if not rules.restart and value != component.parameters[name].default:
                raise _refused(
                    f"another value of {name}, which needs a restart:",
                    str(value),
                    "live.restart",
                    f"false. Leave {name} out of the study, or ask the administrator for restart: true",
                )
        wanted = lease.live["instances"] if lease.live else 1
        if rules.instances is not None and wanted > rules.instances:
            allowed = f"at most {rules.instances}. Give the study a roll-out that begins with fewer"
            raise _refused(
                "settings of a trial on several instances at a time:", str(wanted), "live.instances", allowed
            )
        if lease.live is None and (rules.hours is not None or rules.exposure is not None):
            allowed = "only with pairs, which end in time. Give the study the key live"
            raise _refused(
                "a trial of one block under limits of time:", lease.study, "live.hours, live.exposure", allowed
            )
        assert spec.live is not None
        limits = {"instances": rules.instances, "hours": rules.hours, "exposure": rules.exposure}
        return replace(spec, live={**spec.live, "rules": limits})

    def _refusal(self, component: Component, application: str) -> PolicyError | None:
        found = component.applications.get(application)
        barred = self._barred(component, application)
        return barred if barred is not None or found is None else self._standing_refusal(component, found)

    def _barred(self, component: Component, application: str) -> PolicyError | None:
        if self.components is not None:
            rule = self.components.get(component.name)
            if rule is None:
                return _refused("component", component.name, "components", ", ".join(self.components))
            if rule.digests and component.digest not in rule.digests:
                field = f"components.{component.name}.digests"
                return _refused("the component's digest", component.digest, field, ", ".join(rule.digests))
            if rule.applications and application not in rule.applications:
                field = f"components.{component.name}.applications"
                return _refused("application", application, field, ", ".join(rule.applications))
        if component.live is not None and self.live is None:
            return _refused("live component", component.name, "live", "the policy has no such key")
        found = component.applications.get(application)
        if not self.batch_scripts and found is not None and found.is_script:
            return _refused("application", application, "batch_scripts", "false: no batch scripts")
        return None

    def refusals(self, components: Mapping[str, Component]) -> Iterator[tuple[str, str, PolicyError]]:
        """Yield each component and application that no study may run, with the reason."""
        for name, component in components.items():
            for application in component.applications:
                refusal = self._refusal(component, application)
                if refusal is not None:
                    yield name, application, refusal

    def _standing_refusal(self, component: Component, application: Application) -> PolicyError | None:
        """Return why every job of an application is refused, whatever the values of its parameters are.

        The lines `#SBATCH` of a batch script are among its directives.
        """
        options = [item for item in component.scheduler_options if not _depends(component, item)]
        directives = [*application.directives]
        directives += [item for item in component.directives if not _depends(component, item)]
        names = [*component.env, *application.env, *(component.build.env if component.build else ())]
        names += [
            one.env[0]
            for one in component.parameters.values()
            if one.env and one.condition is None and not one.omit_default and one.env[1].items
        ]
        names += ["LD_PRELOAD"] if component.preload else []
        try:
            for name in names:
                _expect("environment variable", name, "environment", self.environment)
            if self.slurm is not None:
                self._expect_of_slurm(self.slurm, options, directives)
            if self.ray is not None:
                self._expect_of_ray(self.ray, options)
            if self.psij is not None:
                self._expect_of_psij(self.psij, options)
        except PolicyError as refusal:
            return refusal
        return None

    def _admit_to_slurm(self, rules: SlurmRules, spec: JobSpec, own_options: Sequence[str]) -> JobSpec:
        asked = self._expect_of_slurm(rules, spec.scheduler_options, spec.directives)
        try:
            own = {name for name, _ in slurm_options.asked(own_options, ())}
        except slurm_options.UnreadableOptionError as error:
            raise _unreadable("Slurm", f"{error}.") from None
        silent = own.union(name for name, _ in asked)
        added = [f"--{LISTS[rule]}={allowed[0]}" for rule, allowed in rules.lists.items() if LISTS[rule] not in silent]
        if rules.nodes is not None and "nodes" not in silent:
            added.append(f"--nodes=1-{rules.nodes}")
        if rules.time is not None and "time" not in silent:
            added.append(f"--time={rules.time_text}")
        return replace(spec, scheduler_options=[*spec.scheduler_options, *added])

    def _expect_of_slurm(
        self, rules: SlurmRules, options: Sequence[str], directives: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Return what a job asks of Slurm. Raises PolicyError for what the rules forbid."""
        try:
            asked = slurm_options.asked(options, directives)
        except slurm_options.UnreadableOptionError as error:
            raise _unreadable("Slurm", f"{error}.") from None
        for name, value in asked:
            self._check_option(rules, name, value)
        return asked

    def _admit_to_ray(self, rules: RayRules, spec: JobSpec, own_options: Sequence[str]) -> JobSpec:
        asked = self._expect_of_ray(rules, spec.scheduler_options)
        if "cpus" not in rules.most or "num-cpus" in {**asked, **ray_options.asked(own_options)}:
            return spec
        return replace(spec, scheduler_options=[*spec.scheduler_options, f"--num-cpus={rules.most['cpus']}"])

    def _expect_of_ray(self, rules: RayRules, options: Sequence[str]) -> Mapping[str, Any]:
        """Return what a job asks of Ray. Raises PolicyError for what the rules forbid."""
        try:
            asked = ray_options.asked(options)
        except ray_options.UnreadableOptionError as error:
            raise _unreadable("Ray", str(error)) from None
        for rule, most in rules.most.items():
            value = asked.get(RAY_NUMBERS[rule], 0)
            if value > most * (MIB if rule == "memory_mib" else 1):
                raise _refused(f"--{RAY_NUMBERS[rule]}", str(value), f"ray.{rule}", f"at most {most}")
        for rule, allowed in rules.names.items():
            for name in asked.get(RAY_LISTS[rule], {}):
                if name not in allowed:
                    raise _refused(f"--{RAY_LISTS[rule]}", name, f"ray.{rule}", ", ".join(allowed) or "none")
        return asked

    def _expect_of_psij(self, allowed: Sequence[str], options: Sequence[str]) -> None:
        """Raise PolicyError for an option of PSI/J that a job may not ask for."""
        try:
            names = psij_options.names(options)
        except psij_options.UnreadableOptionError as error:
            raise _unreadable("PSI/J", str(error)) from None
        for name in names:
            _expect("option of PSI/J", name, "psij.options", allowed)

    def _check_option(self, rules: SlurmRules, name: str, value: str) -> None:
        for rule, allowed in rules.lists.items():
            if name == LISTS[rule]:
                for one in value.split(","):
                    if one not in allowed:
                        raise _refused(name, one, f"slurm.{rule}", ", ".join(allowed))
        if name == "nodes" and rules.nodes is not None:
            most = slurm_options.most_nodes(value)
            if most is None or most > rules.nodes:
                raise _refused("number of nodes", value, "slurm.nodes", f"at most {rules.nodes}")
        if name == "time" and rules.time is not None:
            seconds = slurm_options.seconds(value)
            if seconds is None or seconds > rules.time:
                raise _refused("time", value, "slurm.time", f"at most {rules.time_text}")
        if rules.options is not None and name not in (*slurm_options.CONTROLLED, *rules.options):
            raise _refused("option of sbatch", name, "slurm.options", ", ".join(rules.options) or "none")


def _depends(component: Component, item: str) -> bool:
    """Return whether an item of a command line depends on the value of a parameter."""
    return any(name in component.parameters for name in placeholders.names_in_argument(item))


def _unreadable(scheduler: str, why: str) -> PolicyError:
    return PolicyError(
        f"An option of this job for {scheduler} cannot be checked against the agent's policy: {why} Change it in the"
        " component file."
    )


def load(path: Path) -> Policy:
    """Read the rules in a file. Only its owner and root may be able to change it.

    Raises:
        ConfigError: the file cannot be read, others may write it, or it has errors. The message lists all errors.
    """
    try:
        if path.stat().st_mode & 0o022:
            raise ConfigError(f"--policy {path} can be written by its group or by others. Run: chmod go-w {path}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--policy {path} cannot be read: {error}") from None
    reader = Reader(str(path))
    table = reader.parse(text)
    policy = Policy() if table is None else _read(table)
    if reader.problems:
        raise ConfigError("\n".join(["the policy cannot be used:", *map(str, reader.problems)]))
    return policy


def _read(table: Table) -> Policy:
    table.allow(KEYS)
    limits = table.table("limits")
    if limits is not None:
        limits.allow(LIMIT_KEYS)
    rules = table.table("slurm")
    ray = table.table("ray")
    psij = table.table("psij")
    if psij is not None:
        psij.allow(PSIJ_KEYS)
    matching = table.table("matching")
    return Policy(
        components=_read_components(table) if "components" in table else None,
        batch_scripts=table.flag("batch_scripts", True),
        show_commands=table.flag("show_commands", True),
        trial_user=table.text("trial_user") if "trial_user" in table else "",
        tenants=_patterns(table, "tenants"),
        studies=_patterns(table, "studies"),
        environment=_patterns(table, "environment"),
        trials=limits.integer("trials", minimum=1) if limits is not None and "trials" in limits else None,
        seconds=limits.number("seconds", above=0) if limits is not None and "seconds" in limits else None,
        artifacts=_artifacts(limits, "artifacts", Policy.artifacts, MOST_ARTIFACTS),
        artifact_bytes=_artifacts(limits, "artifact_kib", Policy.artifact_bytes // KIB, LARGEST_KIB) * KIB,
        slurm=None if rules is None else _read_slurm(rules),
        ray=None if ray is None else _read_ray(ray),
        psij=None if psij is None else _patterns(psij, "options"),
        matching=MatchingRules() if matching is None else matching_rules.read(matching),
        live=_read_live(table),
        install=_patterns(table, "install") or (),
    )


def _read_live(table: Table) -> LiveRules | None:
    live = table.table("live")
    if live is None:
        return None
    live.allow(LIVE_KEYS)
    found = None
    if "hours" in live:
        try:
            found = hours.parse(live.text("hours"))
        except ValueError as error:
            live.fault("hours", str(error))
    exposure = live.number("exposure", above=0) if "exposure" in live else None
    if exposure is not None and exposure > 1:
        live.fault("exposure", f"{exposure:g} is above 1, all of the time")
    return LiveRules(
        studies=_patterns(live, "studies"),
        restart=live.flag("restart", False),
        instances=live.integer("instances", minimum=1) if "instances" in live else None,
        hours=found,
        exposure=exposure,
    )


def _artifacts(limits: Table | None, key: str, default: int, most: int) -> int:
    if limits is None or key not in limits:
        return default
    found = limits.integer(key, minimum=0)
    if found > most:
        limits.fault(key, f"{found} is above {most}, the limit of the service")
    return found


def _read_components(table: Table) -> dict[str, ComponentRule]:
    found = {}
    for name, rule in table.tables("components"):
        rule.allow(COMPONENT_KEYS)
        for digest in (digests := rule.texts("digests")):
            if not re.fullmatch("[0-9a-f]{64}", digest):
                rule.fault(
                    "digests",
                    f"{digest!r} is not a digest of 64 hexadecimal digits, as `trimtab-agent check` prints it",
                )
        found[name] = ComponentRule(digests, rule.texts("applications"))
    return found


def _read_slurm(table: Table) -> SlurmRules:
    table.allow(SLURM_KEYS)
    lists = {}
    for rule in LISTS:
        if rule in table:
            lists[rule] = table.texts(rule)
            if not lists[rule]:
                table.fault(rule, "must name at least one")
    time = table.text("time") if "time" in table else ""
    seconds = slurm_options.seconds(time) if time else None
    if time and seconds is None:
        table.fault("time", f"{time!r} is not a time for sbatch, such as '01:30:00' (in quotes)")
    return SlurmRules(
        lists=lists,
        nodes=table.integer("nodes", minimum=1) if "nodes" in table else None,
        time=seconds,
        time_text=time,
        options=table.texts("options") if "options" in table else None,
    )


def _read_ray(table: Table) -> RayRules:
    table.allow(RAY_KEYS)
    return RayRules(
        most={rule: table.integer(rule, minimum=0) for rule in RAY_NUMBERS if rule in table},
        names={rule: table.texts(rule) for rule in RAY_LISTS if rule in table},
    )


def _patterns(table: Table, key: str) -> tuple[str, ...] | None:
    return table.texts(key) if key in table else None


def _expect(what: str, value: str, rule: str, patterns: Sequence[str] | None) -> None:
    if patterns is not None and not any(fnmatchcase(value, pattern) for pattern in patterns):
        raise _refused(what, value, rule, ", ".join(patterns) or "none")


def _refused(what: str, value: str, rule: str, allowed: str) -> PolicyError:
    return PolicyError(f"The administrator of this cluster does not allow {what} {value!r} (rule {rule}: {allowed}).")
