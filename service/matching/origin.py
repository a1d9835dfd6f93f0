"""The job that a study has tuned: what its spec says, completed by what its trials ran."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from service.core.space import Configuration
from service.matching.linkage.job import Job
from service.studies import actions
from service.studies.job_metadata import LONGEST_COMMAND, LONGEST_NAME, MOST_NODES
from service.studies.models import Study
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

# Leases belong to the package `fleet`, which is above this one, so their table is read by its name. The trial of the
# default comes first: users who know nothing of the tuning submit such jobs.
_RUN = """
SELECT (SELECT max(started_at) FROM studies_trial WHERE tenant_id = %s AND study_id = %s), (
    SELECT lease.invocation FROM studies_trial AS trial
    JOIN fleet_lease AS lease ON lease.trial_id = trial.id AND lease.tenant_id = trial.tenant_id
    WHERE trial.tenant_id = %s AND trial.study_id = %s AND trial.key IN (%s, %s) AND lease.invocation IS NOT NULL
    ORDER BY trial.key = %s DESC, trial.number DESC LIMIT 1
)
"""
_NODES = re.compile(r"(?:--nodes=|-N=?)?(\d{1,7})(?:-\d+)?")


def job_of(principal: Principal, study: Study, configuration: Configuration) -> Job:
    """Return the job that a study has tuned. `configuration` is the recommended one.

    Where the spec says nothing: the user is the study's creator, the name is the application or the component, program
    and command are the ones of a trial with the default or the recommended configuration, and so are the nodes.
    """
    said = spec_of(study).job
    keys = [actions.configuration_key(study, one) for one in (spec_of(study).space.default(), configuration)]
    of_study = (principal.tenant_id, study.pk)
    ((started, invocation),) = access.query(principal, _RUN, (*of_study, *of_study, *keys, keys[0]))
    argv = _argv(invocation)
    command = said.command or shlex.join(argv)
    program = said.program or (PurePosixPath(argv[0]).name if argv and not said.command else _program(said.command))
    return Job(
        user=_cut(said.user or study.owner),
        name=_cut(said.name or study.application or study.component),
        program=_cut(program),
        command_line=_cut(command, LONGEST_COMMAND),
        submitted_at=_moment(started, study),
        nodes=said.nodes or nodes_of((invocation or {}).get("scheduler_options", ())),
    )


def nodes_of(options: Sequence[str]) -> int:
    """Return the number of nodes that scheduler options ask for; 1 if they ask for none."""
    for option, following in zip(options, [*options[1:], ""], strict=False):
        text = following if option in ("-N", "--nodes") else option if option.startswith(("-N", "--nodes=")) else ""
        found = _NODES.fullmatch(text)
        if found is not None:
            return min(max(int(found[1]), 1), MOST_NODES)
    return 1


def _argv(invocation: Mapping[str, Any] | None) -> list[str]:
    commands = (invocation or {}).get("commands") or [{}]
    return [str(one) for one in commands[-1].get("argv", ())]


def _program(command: str) -> str:
    first = command.split(maxsplit=1)
    return PurePosixPath(first[0]).name if first else ""


def _moment(started: datetime | None, study: Study) -> datetime:
    return started or study.created_at


def _cut(text: str, longest: int = LONGEST_NAME) -> str:
    return text.replace("\0", "")[:longest]
