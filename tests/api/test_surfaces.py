"""One object decides what is recommended: whatever shows or uses a recommendation says what the verdict says.

service/ARCHITECTURE.md lists the surfaces with the field that each of them reads.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from service.fleet.components import best_settings
from service.matching import records
from service.notices.notices import page as notices_page
from service.planning.warm_start import warm_start
from service.results import insight, summaries
from service.results.analysis import Analysis, analyse, best_trials
from service.results.comparison import compare
from service.rpc import converters, matching_converters, result_converters
from service.studies import selectors
from service.studies.models import Study, StudySummary, Trial
from service.studies.specs import Budget, spec_of
from service.tenancy import access
from service.tenancy.models import Tenant
from service.tenancy.principal import Principal, Role
from service.trials.continuing import check_study
from service.tuner.verdict import Verdict, in_words
from tests.api.conftest import Api
from tests.factories.domain import refused
from tests.factories.verdicts import KINDS, LIMIT, MACHINE, make_study, run_to_the_end
from trimtab import Minimize
from trimtab import Study as SdkStudy
from trimtab._gen import matching_pb2, tuning_pb2
from trimtab._internal.messages.agents import from_best_settings
from trimtab._internal.messages.matching import from_record
from trimtab._internal.messages.results import (
    from_context_table,
    from_pareto_verdict,
    from_penalties,
    from_recommendation,
    from_verdict,
)
from trimtab._internal.messages.spec import from_spec
from trimtab._internal.messages.trials import from_trial
from trimtab.cli import best as best_command
from trimtab.cli.quantities import quantity
from trimtab.cli.results import print_best, print_contexts
from trimtab.context import ContextTable

pytestmark = pytest.mark.django_db

ALONE = [kind for kind in KINDS if kind not in ("pareto", "context")]
NUMBERS = ("value", "default", "gain", "low", "high", "runs", "default_runs", "trials", "measured", "doubtful")
COUNTS = (*NUMBERS, "rounds", "disturbed_rounds")


@pytest.fixture
def principal() -> Principal:
    """The administrator who uses the REST interface."""
    return Principal(Tenant._default_manager.get(slug="default").pk, "administrator", Role.ADMIN)


def sent(message: Message, protocol: Any = tuning_pb2) -> Any:
    """Return a message of the service as the SDK receives it."""
    return getattr(protocol, type(message).__name__).FromString(message.SerializeToString())


class Seen:
    """A study with its analysis, and what the protocol says about it."""

    def __init__(self, principal: Principal, kind: str) -> None:
        self.principal, self.kind = principal, kind
        self.name = make_study(principal, kind)
        self.study: Study = selectors.get_study(principal, self.name)
        self.analysis: Analysis = analyse(principal, self.study)
        trials = best_trials(principal, self.study, self.analysis)
        self.best = sent(result_converters.best_message(self.study, self.analysis, trials))
        self.spec = from_spec(sent(converters.study_message(self.study)).spec)
        self.trials = [from_trial(self.spec.space, one) for one in self.best.trials]
        summaries.summarise(principal, self.study.pk)

    @property
    def verdict(self) -> Verdict:
        assert self.analysis.verdict is not None
        return self.analysis.verdict

    def printed(self, capsys: pytest.CaptureFixture[str]) -> str:
        """Return what `trimtab study show` prints of the result."""
        has = self.best.HasField
        study = SimpleNamespace(
            best_trials=self.trials,
            spec=self.spec,
            objectives=self.spec.objectives,
            verdict=from_verdict(self.best.verdict) if has("verdict") else None,
            pareto_verdict=from_pareto_verdict(self.best.pareto_verdict) if has("pareto_verdict") else None,
            penalties=from_penalties(self.best.penalties) if has("penalties") else None,
            advice="",
            context_table=lambda: from_context_table(self.name, self.best),
            trials=lambda states=(): [],
        )
        capsys.readouterr()
        assert print_best(cast("SdkStudy", study))
        return " ".join(capsys.readouterr().out.split())


def plain(verdict: Verdict) -> dict[str, Any]:
    """Return the parts of a verdict that all surfaces with a whole verdict have."""
    compared = verdict.compared
    return {
        "level": str(verdict.level),
        "code": str(verdict.code),
        "text": verdict.text,
        "configuration": dict(verdict.configuration),
        "conditions": [str(one) for one in verdict.conditions],
        "compared": None if compared is None else asdict(compared),
        "advice": str(verdict.advice),
        **{name: getattr(verdict, name) for name in COUNTS},
    }


def of_rest(found: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: found[name] for name in ("level", "code", "text", "configuration", "compared", "advice", *COUNTS)}
    return {**shown, "conditions": [one["text"] for one in found["conditions"]]}


def of_sdk(found: Any) -> dict[str, Any]:
    shown = {name: getattr(found, name) for name in ("level", "code", "text", "advice", *COUNTS)}
    compared = None
    if found.compared is not None:
        compared = {"configuration": dict(found.compared.params), **asdict(found.compared)}
        del compared["params"]
    configuration, conditions = dict(found.params), list(found.conditions)
    return {**shown, "configuration": configuration, "conditions": conditions, "compared": compared}


@pytest.mark.parametrize("kind", ALONE)
def test_every_surface_says_what_the_verdict_says(
    principal: Principal, kind: str, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(principal, kind)
    verdict, expected, name = seen.verdict, plain(seen.verdict), seen.name
    assert (verdict.level, verdict.code) == (KINDS[kind].level, KINDS[kind].code)
    configuration = dict(verdict.configuration)
    if verdict.gain is not None and verdict.default is not None:
        assert verdict.gain == pytest.approx(1 - verdict.value / verdict.default, abs=1e-9)

    # REST: analysis, best trials, exports.
    rest = api.ok("GET", f"/studies/{name}/analysis")
    assert of_rest(rest["verdict"]) == expected
    assert rest["configuration"] == configuration
    assert [one["params"] for one in rest["best"]] == [configuration]
    assert (rest["recommendation"]["configuration"], rest["recommendation"]["value"]) == (configuration, verdict.value)
    (progress,) = rest["objectives"]
    names = {"default": "default", "best": "value", "gain": "gain", "gain_low": "low", "gain_high": "high"}
    assert {one: progress[one] for one in names} == {one: getattr(verdict, own) for one, own in names.items()}
    (first,) = api.ok("GET", f"/studies/{name}/best")["trials"]
    assert first["params"] == configuration
    assert of_rest(api.ok("GET", f"/studies/{name}/trials.json")["verdict"]) == expected
    (row,) = csv.DictReader(io.StringIO(api.client.get(f"/api/v1/studies/{name}/verdict.csv").content.decode()))
    assert json.loads(row["configuration"]) == configuration
    assert row["conditions"] == "; ".join(expected["conditions"])
    assert json.loads(row["compared"] or "null") == expected["compared"]
    for one in COUNTS:
        assert (float(row[one]) if row[one] else None) == expected[one], one

    # gRPC and SDK.
    sdk = from_verdict(seen.best.verdict)
    assert of_sdk(sdk) == expected
    recommendation = from_recommendation(seen.spec.space, seen.best.recommendation)
    assert (dict(recommendation.params), recommendation.value) == (configuration, verdict.value)
    assert [dict(trial.params) for trial in seen.trials] == [configuration]

    # Lists, by which the console and REST sort, and the comparison of studies.
    (listed,) = api.ok("GET", f"/studies?name_prefix={name}")["studies"]
    (objective,) = listed["objectives"]
    for shown, own in {**names, "gain_low": "low", "gain_high": "high"}.items():
        assert objective[shown.removeprefix("gain_")] == getattr(verdict, own)
    for one in ("level", "code", "runs", "default_runs", "measured", "doubtful", "rounds", "disturbed_rounds"):
        assert objective[one] == expected[one], one
    assert [one["text"] for one in objective["conditions"]] == expected["conditions"]
    summary = access.rows(StudySummary, principal).get(study_id=seen.study.pk)
    assert (summary.configuration, summary.best, summary.gain) == (configuration, verdict.value, verdict.gain)
    (curve,) = compare(principal, [name]).curves
    assert curve.configuration == configuration
    assert curve.objective is not None
    assert curve.objective["best"] == verdict.value

    # The best known settings, over REST and gRPC.
    (known,) = best_settings(principal, seen.study.component)
    settings = from_best_settings(sent(result_converters.best_settings_message(known)))
    assert of_sdk(settings.verdict) == expected
    assert dict(settings.params) == configuration
    (over_rest,) = api.ok("GET", f"/components/{seen.study.component}")["best"]
    assert (over_rest["configuration"], over_rest["objective"]["code"]) == (configuration, expected["code"])

    # The command line: `tune`, `study show`, `best`.
    capsys.readouterr()
    best_command._print(settings)
    in_best = " ".join(capsys.readouterr().out.split())
    for text in (seen.printed(capsys), in_best):
        proven = "proven: " if verdict.level == "proven" else ""
        assert f"Verdict: {proven}{verdict.text}" in text
        assert all(f"Condition: {one}" in text for one in expected["conditions"])
        assert quantity(verdict.value, Minimize("seconds", unit="s")) in text
        assert ("Compared with the default: " in text) == (verdict.compared is not None)
        assert expected["advice"] in text
        assert bool(expected["advice"]) == (verdict.disturbed_rounds > 0)
        assert all(f"{one} {value}" in text or f"{one} {value:.6g}" in text for one, value in configuration.items())

    # The notification, and the studies that start from this one.
    (notice,) = [one for one in notices_page(principal).page.items if one.study == name and one.record is None]
    is_proven = verdict.level == "proven"
    assert (notice.kind, notice.reason) == (
        ("study.gain_proven", in_words(verdict)) if is_proven else ("study.ended", seen.study.state_reason)
    )
    assert warm_start_of(seen)[0] == configuration


def test_records_are_active_only_for_a_gain_without_conditions(principal: Principal, api: Api) -> None:
    reasons = {
        "proven": "",
        "proven-disturbed": "Other processes disturbed",
        "disturbed": "Other processes disturbed",
        "injected": "The gain was measured under injected contention.",
        "machines": "Its runs were measured on 2 kinds of machines.",
        "worse": None,
        "provisional": None,
    }
    for kind, reason in reasons.items():
        seen = Seen(principal, kind)
        found = api.ok("GET", f"/matching/records?study={seen.name}")["records"]
        if reason is None:
            assert found == []
            continue
        (record,) = found
        verdict = seen.verdict
        assert record["params"] == dict(verdict.configuration)
        assert (record["gain"], record["gain_low"], record["gain_high"]) == (verdict.gain, verdict.low, verdict.high)
        assert [one["text"] for one in record["conditions"]] == [str(one) for one in verdict.conditions]
        state = ("WITHDRAWN", "approval") if reason else ("ACTIVE", "")
        assert (record["state"], record["cause"]) == state, kind
        assert reason in record["state_reason"]
        sdk = from_record(sent(matching_converters.record_message(records.get(principal, record["id"])), matching_pb2))
        assert (sdk.cause, sdk.conditions) == (record["cause"], tuple(str(one) for one in verdict.conditions))
        # The sweep agrees with what was written at the end of the study.
        summaries.summarise(principal, seen.study.pk)
        assert api.ok("GET", f"/matching/records/{record['id']}") == {**record, "feedback": record["feedback"]}


def test_a_component_says_what_it_injects(principal: Principal, api: Api) -> None:
    seen = Seen(principal, "injected")
    (version,) = api.ok("GET", f"/components/{seen.study.component}")["versions"]
    assert version["injected"] == [{"text": "contention", "application": "", "parameter": "", "values": []}]


def test_only_an_administrator_approves_a_record_that_was_withheld(principal: Principal) -> None:
    seen = Seen(principal, "injected")
    (record,) = records.page(principal, study=seen.name).items
    member = Principal(principal.tenant_id, "grace", Role.MEMBER)
    assert refused("not_permitted", lambda: records.change(member, str(record.pk), "ACTIVE")).data["roles"] == [
        "admin",
        "operator",
    ]
    approved = records.change(principal, str(record.pk), "ACTIVE")
    assert (approved.is_active, approved.state_reason) == (True, "administrator has approved it.")
    summaries.summarise(principal, seen.study.pk)
    assert records.get(principal, str(record.pk)).is_active, "until there is another proof"
    # What a person has withdrawn after the approval, a member may restore.
    records.change(member, str(record.pk), "WITHDRAWN")
    assert records.change(member, str(record.pk), "ACTIVE").is_active
    # Another check is another proof, which an administrator has to approve again.
    check_study(principal, seen.name)
    run_to_the_end(principal, seen.name, KINDS["injected"])
    assert records.get(principal, str(record.pk)).cause == "approval"
    notices = [one.kind for one in notices_page(principal).page.items if one.record == record.pk]
    assert notices.count("record.withdrawn") == 2


def test_trials_that_break_a_limit_are_marked_and_never_lead(
    principal: Principal, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(principal, "limits")
    trials = api.ok("GET", f"/studies/{seen.name}/trials?page_size=100")["trials"]
    breaking = {one["number"]: one["breaks"] for one in trials if one["metrics"]["memory_mb"] > 900}
    assert len(breaking) > 1
    assert {one["number"]: one["breaks"] for one in trials if one["breaks"]} == breaking
    assert set(map(tuple, breaking.values())) == {(LIMIT,)}
    rows = csv.DictReader(io.StringIO(api.client.get(f"/api/v1/studies/{seen.name}/trials.csv").content.decode()))
    assert {int(row["number"]): [row["breaks"]] for row in rows if row["breaks"]} == breaking
    stored = access.rows(Trial, principal).filter(study_id=seen.study.pk)
    messages = [from_trial(seen.spec.space, sent(converters.trial_message(seen.study, one))) for one in stored]
    assert {one.number: list(one.breaks) for one in messages if one.breaks} == breaking
    (curve,) = compare(principal, [seen.name]).curves
    assert not {number for number, _ in curve.steps} & breaking.keys()
    assert min(value for _, value in curve.steps) > min(one["metrics"]["seconds"] for one in trials)
    (limit,) = [one for one in seen.verdict.conditions if one.code == "limit"]
    kept, runs = limit.values["kept"], limit.values["runs"]
    assert isinstance(kept, int)
    assert isinstance(runs, int)
    assert 0 < kept < runs
    assert f"Condition: keeps {LIMIT} in {kept} of {runs} runs" in seen.printed(capsys)


def test_penalties_are_named_and_no_measurements(
    principal: Principal, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(principal, "penalties")
    trials = api.ok("GET", f"/studies/{seen.name}/trials?page_size=100")["trials"]
    penalties = [one["number"] for one in trials if one["metrics"]["seconds"] == 1e9]
    assert len(penalties) > 1
    assert api.ok("GET", f"/studies/{seen.name}/analysis")["penalties"] == penalties
    advice = from_penalties(seen.best.penalties)
    assert list(advice.trials) == penalties
    assert advice.text.startswith(f"{len(penalties)} values look like penalties: report these trials as infeasible, by")
    assert advice.text in seen.printed(capsys)
    assert not Seen(principal, "none").best.HasField("penalties")
    insight.read(principal, seen.study)
    insight.compute(principal.tenant_id, seen.study.pk)
    assert api.ok("GET", f"/studies/{seen.name}/insight")["data"]["penalties"] == {
        "trials": penalties,
        "text": advice.text,
        "call": "",
        "command": "",
    }
    assert seen.verdict.default is not None
    assert 7 < seen.verdict.value < seen.verdict.default < 11


def test_each_row_of_a_table_has_its_own_settings_default_and_gain(
    principal: Principal, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(principal, "context")
    small, large = seen.analysis.contexts
    assert small.verdict is not None
    assert large.verdict is not None
    default = {"x": 0.5, "n": 4}
    assert (small.is_default, large.is_default) == (False, True)
    assert (dict(small.default), dict(large.default), dict(large.settings)) == (default, default, default)
    assert {**small.settings, "size": "small"} == dict(small.verdict.configuration) == dict(small.found or {})
    # The default is recommended for large inputs, in its own numbers, and never shown as what was found.
    assert (large.verdict.gain, large.verdict.value) == (0.0, large.verdict.default)
    assert large.verdict.configuration == {**default, "size": "large"}
    assert large.verdict.compared is not None
    assert large.found == large.verdict.compared.configuration

    rows = api.ok("GET", f"/studies/{seen.name}/analysis")["contexts"]
    assert rows == api.ok("GET", f"/studies/{seen.name}/trials.json")["contexts"]
    table = from_context_table(seen.name, seen.best)
    assert ContextTable.from_json(table.to_json()).rows[1].best == table.rows[1].best
    for row, rest, sdk in zip((small, large), rows, table.rows, strict=True):
        assert row.verdict is not None
        assert sdk.verdict is not None
        assert of_rest(rest["verdict"]) == of_sdk(sdk.verdict) == plain(row.verdict)
        assert (rest["settings"], rest["default"]) == (dict(row.settings), default)
        assert (dict(sdk.settings), dict(sdk.default or {})) == (dict(row.settings), default)
        assert rest["best"] == row.found
        assert {**(sdk.best or {}), **row.context} == dict(row.found or {})
    capsys.readouterr()
    print_contexts(table)
    printed = " ".join(capsys.readouterr().out.split())
    assert MACHINE.split(",")[0] in printed

    # The lists show the context with the proven gain, and no settings that would hold for all contexts.
    summary = access.rows(StudySummary, principal).get(study_id=seen.study.pk)
    assert (summary.configuration, summary.best) == (None, small.verdict.value)
    assert seen.analysis.configuration is None
    for row, known in zip((large, small), best_settings(principal, seen.study.component), strict=True):
        assert row.verdict is not None
        assert (known.context, known.configuration) == (row.context, row.verdict.configuration)
        settings = from_best_settings(sent(result_converters.best_settings_message(known)))
        assert of_sdk(settings.verdict) == plain(row.verdict)
        assert dict(settings.context) == dict(row.context)
        capsys.readouterr()
        best_command._print(settings)
        assert f"small, size {row.context['size']}, by study {seen.name}" in capsys.readouterr().out
    over_rest = api.ok("GET", f"/components/{seen.study.component}")["best"]
    assert [one["context"]["size"] for one in over_rest] == ["large", "small"]
    (curve,) = compare(principal, [seen.name]).curves
    assert (curve.configuration, curve.steps) == (None, [])


def test_with_several_objectives_all_numbers_belong_to_one_configuration(
    principal: Principal, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(principal, "pareto")
    verdict = seen.analysis.pareto_verdict
    assert verdict is not None
    assert len(verdict.members) > 1
    configuration = seen.analysis.configuration
    (member,) = [one for one in verdict.members if one.params == configuration]
    expected = [(one.metric, one.default, one.value, one.gain, one.low, one.high) for one in member.objectives]
    rest = api.ok("GET", f"/studies/{seen.name}/analysis")
    assert rest["configuration"] == configuration
    names = ("metric", "default", "best", "gain", "gain_low", "gain_high")
    assert [tuple(one[name] for name in names) for one in rest["objectives"]] == expected
    (listed,) = api.ok("GET", f"/studies?name_prefix={seen.name}")["studies"]
    names = ("metric", "default", "best", "gain", "low", "high")
    assert [tuple(one[name] for name in names) for one in listed["objectives"]] == expected
    assert [one["level"] for one in listed["objectives"]] == [str(verdict.level)] * 2
    (curve,) = compare(principal, [seen.name], "memory_mb").curves
    assert curve.configuration == configuration
    assert curve.objective is not None
    assert (curve.objective["best"], curve.objective["gain"]) == (expected[1][2], expected[1][3])
    printed = seen.printed(capsys)
    assert f"Verdict: {verdict.text}" in printed
    words = [str(one) for one in verdict.conditions]
    assert words == ["under injected contention", f"on {MACHINE}"]
    assert all(f"Condition: {one}" in printed for one in words)
    assert [one["text"] for one in rest["pareto_verdict"]["conditions"]] == words
    assert list(from_pareto_verdict(seen.best.pareto_verdict).conditions) == words


def warm_start_of(seen: Seen) -> list[Any]:
    """Return the first configurations of a study that starts from this one, the default included."""
    spec = replace(spec_of(seen.study), start_from=(seen.name,), budget=Budget(max_trials=40))
    found = warm_start(seen.principal, spec)
    default = dict(spec_of(seen.study).space.default())
    assert seen.analysis.configuration is not None
    return [default] if dict(seen.analysis.configuration) == default else list(found.configurations)
