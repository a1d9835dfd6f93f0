"""The components that agents offer, members have written or studies have tuned, with their best configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from service.core.context import context_words
from service.core.errors import NotFound
from service.core.space import Configuration
from service.fleet import selectors
from service.fleet.models import Agent, ComponentFile
from service.studies.isolated import isolated
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tuner.verdict import Level

# The levels of certainty whose gains precede all others in the best known settings.
_RANKED = (Level.PROVEN, Level.PROVISIONAL)


@dataclass(slots=True)
class Version:
    """One version (digest) of a component and the agents that offer it.

    The fields come from the agent that was seen last.
    """

    digest: str
    description: str
    applications: Sequence[str]
    space: Sequence[Mapping[str, Any]]
    metrics: Sequence[str]
    seen_at: datetime
    injected: Sequence[Mapping[str, Any]] = ()
    agents: list[Agent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Best:
    """The best configuration that a study has found for an application.

    `objective` is from the study's summary. `machine` describes where the study's last trial ran. `elsewhere` says that
    the agents that offer the component now have last measured it on other machines. `context`: the only one for which
    the configuration is recommended; empty if there is none.
    """

    application: str
    study: str
    state: str
    digest: str
    objective: Mapping[str, Any]
    configuration: Configuration
    trials: int
    updated_at: datetime
    machine: str = ""
    elsewhere: bool = False
    context: Configuration = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Component:
    """A component with its versions and files, the newest first.

    `versions` is empty if no agent offers the component. `studies` is the number of studies that have tuned it. `files`
    holds the files that members have written, without their texts and with the `agents` that have installed them.
    """

    name: str
    versions: Sequence[Version]
    studies: int
    files: Sequence[ComponentFile]


def list_components(principal: Principal) -> list[Component]:
    """Return all components that agents offer, members have written or studies have tuned, by name."""
    by_name: dict[str, dict[str, Version]] = {}
    offering: dict[str, list[Agent]] = {}
    for agent in sorted(selectors.list_agents(principal), key=lambda one: one.last_seen_at, reverse=True):
        for offered in agent.components:
            versions = by_name.setdefault(str(offered["name"]), {})
            version = versions.setdefault(
                str(offered["digest"]),
                Version(
                    digest=str(offered["digest"]),
                    description=offered.get("description", ""),
                    applications=offered.get("applications", []),
                    space=offered.get("space", []),
                    metrics=offered.get("metrics", []),
                    seen_at=agent.last_seen_at,
                    injected=offered.get("injected", []),
                ),
            )
            version.agents.append(agent)
            offering.setdefault(str(offered.get("file_digest", "")), []).append(agent)
    files: dict[str, list[ComponentFile]] = {}
    for file in access.rows(ComponentFile, principal).defer("text").order_by("name", "-number"):
        file.agents = offering.get(file.sha256, ())
        files.setdefault(file.name, []).append(file)
    tuned: dict[str, int] = {}
    for name in access.rows(Study, principal).exclude(component="").values_list("component", flat=True):
        tuned[name] = tuned.get(name, 0) + 1
    return [
        Component(
            name,
            sorted(
                by_name.get(name, {}).values(),
                key=lambda one: (any(agent.online for agent in one.agents), one.seen_at),
                reverse=True,
            ),
            tuned.get(name, 0),
            files.get(name, ()),
        )
        for name in sorted({*by_name, *tuned, *files})
    ]


def get_component(principal: Principal, name: str) -> Component:
    """Return the component of this name. Raises NotFound."""
    for component in list_components(principal):
        if component.name == name:
            return component
    raise NotFound("component_not_found", f"No agent offers a component {name!r}, and no file or study has it.")


def best_settings(principal: Principal, name: str) -> list[Best]:
    """Return the best study for each application, context and objective, by application.

    A proven gain precedes a provisional one, which precedes any other. Among equals the largest gain is the best.
    """
    tuned = access.rows(Study, principal).filter(component=name, summary__gain__isnull=False)
    known: list[tuple[int, Best]] = []
    for study in tuned.order_by("-pk").select_related("summary").defer("spec"):
        bests: list[Best] | None = isolated(partial(list, _bests_of(study)), principal.tenant_id, study.pk)
        known += [(study.pk, one) for one in bests or ()]
    # Sorting keeps the order of equals: the latest study comes first.
    known.sort(key=lambda one: (_rank(one[1].objective), -float(one[1].objective["gain"])))
    found: dict[tuple[str, str, str], tuple[int, Best]] = {}
    for pk, best in known:
        objective = f"{best.objective['metric']} {best.objective['goal']}"
        found.setdefault((best.application, context_words(best.context), objective), (pk, best))
    described = access.rows(Trial, principal).filter(study_id__in=[pk for pk, _ in found.values()], machine__gt="")
    last = described.order_by("study_id", "-number").distinct("study_id").values_list("study_id", "machine")
    machines = dict(last)
    here = _machines_of_agents(principal, name) if machines else set()
    described_bests = []
    for _, (pk, best) in sorted(found.items(), key=lambda one: one[0]):
        machine = machines.get(pk, "")
        elsewhere = machine != "" and here != set() and machine not in here
        described_bests.append(replace(best, machine=machine, elsewhere=elsewhere))
    return described_bests


def _machines_of_agents(principal: Principal, name: str) -> set[str]:
    """Return the machines on which each node of the agents that now offer a component has last measured it."""
    offering = [
        agent.name
        for agent in selectors.list_agents(principal)
        if any(str(one["name"]) == name for one in agent.components)
    ]
    measured = access.rows(Trial, principal).filter(study__component=name, agent__in=offering, machine__gt="")
    last = measured.order_by("agent", "node", "-finished_at").distinct("agent", "node")
    return set(last.values_list("machine", flat=True))


def _bests_of(study: Study) -> Iterator[Best]:
    """Yield what a study recommends: one configuration, or one for each context; nothing with several objectives."""
    summary = study.summary
    objective = summary.objectives[0]
    rows = objective.get("contexts") or [{**objective, "configuration": summary.configuration, "context": {}}]
    for row in rows:
        if row["configuration"] is not None and row["gain"] is not None:
            yield Best(
                application=study.application,
                study=study.name,
                state=study.state,
                digest=study.digest,
                objective=row,
                configuration=row["configuration"],
                trials=study.finished_count,
                updated_at=study.updated_at,
                context=row["context"],
            )


def _rank(objective: Mapping[str, Any]) -> int:
    """Return the place of a verdict's level of certainty."""
    level = objective.get("level")
    return _RANKED.index(level) if level in _RANKED else len(_RANKED)


def obstacle(agent: Agent, component: str, digest: str = "", application: str = "") -> str:
    """Return why an agent cannot run the trials of a study, empty if it can.

    An empty digest or application stands for any.
    """
    if why := misfit(agent, component, digest, application):
        return why
    if agent.draining:
        return "is being drained: it takes no more trials"
    if not agent.online:
        return "is offline"
    return ""


def misfit(agent: Agent, component: str, digest: str = "", application: str = "") -> str:
    """Return why an agent does not offer what a study needs, empty if it does."""
    offered = {str(one["name"]): one for one in agent.components}
    if component not in offered:
        return f"offers {', '.join(sorted(offered)) or 'nothing'}, not {component}"
    found = offered[component]
    if digest not in ("", found["digest"]):
        return f"has another version, {str(found['digest'])[:12]}"
    if application and application not in found.get("applications", ()):
        return f"has no application {application}, but {', '.join(found.get('applications', ())) or 'none'}"
    return ""
