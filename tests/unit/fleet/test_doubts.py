"""The doubts about timings and the machines of trials, against a real PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

from service.core.interference import Interference
from service.fleet import components, runs
from service.planning.create import create_study, update_state
from service.results import analysis, summaries
from service.rpc import converters
from service.studies import selectors
from service.tenancy.principal import Principal
from service.trials import tuners
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import acquire, create, study


def measure(
    principal: Principal,
    agent: str,
    seconds: float,
    doubt: str = "",
    machine: str = "",
    interference: Interference | None = None,
) -> None:
    (grant,) = acquire(principal)
    runs.settle(
        principal,
        agent_id=agent,
        lease=grant.lease,
        outcome="completed",
        metrics={"seconds": seconds},
        doubt=doubt,
        interference=interference,
        machine=machine,
    )


def test_doubtful_timings_are_kept_and_counted_with_the_verdict(principal: Principal, agent: str) -> None:
    name = create(principal)
    measure(principal, agent, 3.0, "other processes took 30 % of the CPU")
    measure(principal, agent, 2.0)
    first = selectors.get_trial(principal, name, 1).trial
    assert (first.doubt, first.reason) == ("other processes took 30 % of the CPU", "")
    verdict = analysis.analyse(principal, study(principal, name)).verdict
    assert verdict is not None
    assert (verdict.doubtful, verdict.measured) == (1, 2)


def test_the_measured_interference_is_kept_with_the_trial(principal: Principal, agent: str) -> None:
    """Names of metrics that the study does not need are left out, however many an agent sends."""
    name = create(principal)
    sent = Interference(share=0.48, wait=0.12, steal=0.0, swapped=3, memory=0.5, unaffected=("seconds", "other"))
    measure(principal, agent, 3.0, interference=sent)
    measure(principal, agent, 2.0)
    first, second = (selectors.get_trial(principal, name, number).trial for number in (1, 2))
    assert first.interference is not None
    assert Interference.from_json(first.interference) == replace(sent, unaffected=("seconds",))
    assert second.interference is None
    (record, _) = tuners.as_seen([first, second])
    assert record.disturbed
    study = selectors.get_study(principal, name)
    message = converters.trial_message(study, first)
    assert (message.interference.share, list(message.interference.unaffected)) == (0.48, ["seconds"])
    assert not converters.trial_message(study, second).HasField("interference")


def test_the_best_known_settings_name_the_machine_of_the_last_trial(principal: Principal, agent: str) -> None:
    spec = make_spec(noisy=False, execution=make_execution())
    for parameter, default in zip(spec["space"]["parameters"], (0.5, 4), strict=True):
        parameter["default"] = default
    name = create_study(principal, study_name(), spec).name
    measure(principal, agent, 3.0, machine="an old processor")
    measure(principal, agent, 2.0, machine="EPYC, Linux 6.8\x00 x86_64, gcc 13" + 300 * "!")
    found = study(principal, name)
    summaries.summarise(principal, found.pk)
    (best,) = components.best_settings(principal, found.component)
    assert best.machine.startswith("EPYC, Linux 6.8")
    assert len(best.machine) == 300
    assert "\0" not in best.machine


def test_settings_that_were_measured_on_another_machine_say_so(principal: Principal, agent: str) -> None:
    spec = make_spec(noisy=False, execution=make_execution())
    for parameter, default in zip(spec["space"]["parameters"], (0.5, 4), strict=True):
        parameter["default"] = default

    def tuned(machine: str, seconds: float) -> None:
        name = create_study(principal, study_name(), spec).name
        measure(principal, agent, 3.0, machine=machine)
        measure(principal, agent, seconds, machine=machine)
        update_state(principal, name, "COMPLETED")
        summaries.summarise(principal, study(principal, name).pk)

    component = spec["execution"]["component"]
    tuned("old, Linux 5", 1.0)
    (best,) = components.best_settings(principal, component)
    assert (best.machine, best.elsewhere) == ("old, Linux 5", False)
    # The machine gets another kernel, and a study finds less there.
    tuned("old, Linux 6", 2.0)
    (best,) = components.best_settings(principal, component)
    assert (best.machine, best.elsewhere) == ("old, Linux 5", True)
