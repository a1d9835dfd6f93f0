"""A tenant with something in every table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from django.db import connection
from django.db.models.functions import Now

from service.core.live_instances import Instance
from service.embedded.postgres import OWNER
from service.fleet import agents, component_files, dry_runs, grants, logs
from service.fleet.models import Agent, LiveInstance
from service.identity import enrolment, memberships, revocations, tokens
from service.identity.models import LoginCode
from service.identity.oidc import Identity, Proof
from service.live import plans
from service.live.models import JobPair, LiveLease, LiveStudy, Loss
from service.live.system import Offered
from service.matching import jobs, settings
from service.notices import channels, notices
from service.planning.create import create_study
from service.results import summaries
from service.results.models import StudyInsight
from service.studies import notes, selectors
from service.studies.change import changing
from service.studies.models import Artifact, Trial
from service.tenancy import access, tenants
from service.tenancy.principal import Principal, Role
from service.trials import enqueue
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.quotas import meter
from service.trials.tell import report_measurement
from tests.factories.domain import make_component, make_execution, make_principal, make_spec
from tests.factories.matching import make_job, make_record, make_report

STUDY, ON_AGENTS, AGENT, SECRET = "victim-study", "victim-on-agents", "victim-agent", "victim-secret"
LIVE = "victim-live"


@dataclass(frozen=True)
class Furnished:
    """Its administrator, and what it has."""

    principal: Principal
    operation: str
    lease: str
    token: str
    artifact: int
    record: str
    channel: str

    @property
    def words(self) -> set[str]:
        """Return the secret words of this tenant, which no answer to another tenant may contain."""
        return {STUDY, ON_AGENTS, LIVE, AGENT, SECRET, self.operation, self.lease, self.token}


def register_agent(principal: Principal, agent_id: str) -> None:
    """Register an agent with the component of `make_execution`."""
    agents.register(
        principal,
        agent_id=agent_id,
        name=agent_id,
        version="1",
        slots=1,
        labels={"secret": f"{agent_id}-label"},
        components=[make_component(description="", recipe=f"{agent_id}-recipe")],
        session_id="s",
    )


def furnish() -> Furnished:
    """Create a tenant with rows in every table: studies, trials, a working agent, tokens, and so on."""
    principal = make_principal()
    create_study(principal, STUDY, make_spec())
    detail = ask_trials(principal, STUDY, count=2, client_id=SECRET)
    report_measurement(principal, STUDY, 1, step=1, metrics={"seconds": 1.0})
    create_study(principal, ON_AGENTS, make_spec(execution=make_execution()))
    register_agent(principal, AGENT)
    (grant,) = grants.acquire(principal, agent_id=AGENT, count=1, held=[])
    logs.append_log(principal, agent_id=AGENT, lease=grant.lease, offset=0, data=SECRET.encode())
    text = f"name: {STUDY}\ndescription: {SECRET}\napplications: {{main: {{command: [run]}}}}\n"
    component_files.write(principal, text, after=0)
    token, _ = tokens.create(principal, name=SECRET, scopes=["read"], study=STUDY)
    _, enrolment_token = enrolment.create(principal)
    digest = sha256(uuid4().bytes).hexdigest()
    enrolment.enrol(enrolment_token, agent_id=AGENT, credential_digest=digest)
    proof = Proof(uuid4().hex, SECRET, "", 0, 0)
    memberships.note(Identity(proof, {tenants.slug_of(principal.tenant_id): Role.VIEWER}, operator=False))
    revocations.revoke_person(principal, "victim-person")
    access.add(principal, LoginCode(digest=digest, actor=SECRET, expires_at=Now()))
    study = selectors.get_study(principal, STUDY)
    access.add(principal, DesignerState(study=study, state={"secret": SECRET}))
    access.add(principal, StudyInsight(study=study, data={"secret": SECRET}, asked_at=None))
    summaries.summarise(principal, study.pk)
    meter.add_worker_seconds(principal, 1.0)
    (trial,) = access.rows(Trial, principal).filter(study__name=STUDY, number=1)
    artifact = access.add(
        principal, Artifact(trial=trial, source=uuid4(), attempt=1, name=f"{SECRET}.txt", size=1, content=b"x")
    )
    dry_runs.ask(principal, make_spec(execution=make_execution()), ON_AGENTS)
    record = make_record(principal, job=make_job(user=SECRET), study_name=STUDY)
    jobs.report(principal, [make_report(record)])
    settings.update(principal, SECRET, settings.DEFAULT)
    notes.change_note(principal, STUDY, 1, text=SECRET)
    channel, _ = channels.create(principal, "webhook", f"https://{SECRET}.example/", ["study.ended"])
    channels.test(principal, str(channel.pk))
    _furnish_live(principal)
    notices.mark_read(principal, 0)
    return Furnished(
        principal,
        str(detail.operation.id),
        grant.lease,
        str(token.pk),
        artifact.pk,
        str(record.pk),
        str(channel.pk),
    )


def _furnish_live(principal: Principal) -> None:
    """Create a live study whose first trial waits for an approval."""
    live = {"approve": "each", "budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.1}}}
    space = {"parameters": [{"name": "size", "type": "int", "min": 1, "max": 64, "default": 4}]}
    execution = make_execution(component="live", application="")
    study = create_study(principal, LIVE, make_spec(space=space, execution=execution, live=live))
    enqueue.enqueue_trials(principal, LIVE, params={"size": 8})
    trial = access.rows(Trial, principal).get(study=study, number=1)
    with changing(principal, LIVE, "trial.wait") as work:
        plans.ensure(work, trial, Offered())
    access.add(principal, LiveStudy(study=study, incumbent={"size": 4}))
    lease = uuid4()
    access.add(
        principal, LiveLease(lease=lease, study=study, trial=trial, seed=SECRET, commitment=SECRET, plan={"block": 1})
    )
    seen = Instance("live", "one", "running", str(lease), settings={"size": 8}, reason=SECRET)
    agent = access.rows(Agent, principal).get(agent_id=AGENT)
    shown = {"component": "live", "name": "one", "state": "running", "report": seen.to_json()}
    access.add(principal, LiveInstance(agent=agent, study=study, trial=1, **shown))
    pair = JobPair(study=study, trial=trial, lease=lease, number=1, candidate_first=True, nodes=1, limit_seconds=60.0)
    pair.kind, pair.first, pair.cost = SECRET, SECRET, 1.0
    access.add(principal, pair)
    access.add(principal, Loss(study=study, lease=lease, budget="slow", by_agent=1.0, by_service=2.0, counted=2.0))


@contextmanager
def as_owner() -> Iterator[None]:
    """Connect this thread as the owner of the tables, for whom row-level security does not apply."""
    connection.close()
    role = connection.settings_dict["USER"]
    connection.settings_dict["USER"] = OWNER
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["USER"] = role
