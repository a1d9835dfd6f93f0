"""Conversion between protocol messages and the SDK's classes: the only file that knows the fields."""

import json
import operator
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, SupportsFloat, SupportsIndex, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from trimtab._gen import identity_pb2 as identity_pb
from trimtab._gen import tuning_pb2 as pb
from trimtab.context import ContextRow, ContextTable, ContextVariable, Observed
from trimtab.errors import InvalidInput, JsonValue
from trimtab.fleet import Agent, BestSettings, Component
from trimtab.identity import ApiToken, AuditEntry, Identity
from trimtab.method import (
    Choice,
    Effects,
    FinalCheck,
    ObjectiveGain,
    ParameterEffect,
    ParetoMember,
    ParetoVerdict,
    Policy,
    Recommendation,
    SmallestConfiguration,
    Verdict,
    VerdictLevel,
)
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Params, Scalar, cast, condition
from trimtab.spec import (
    EarlierTrials,
    Execution,
    JobMetadata,
    Placement,
    SpaceEdit,
    StartedFrom,
    StudySpec,
    StudyState,
    StudyStatus,
)
from trimtab.structs import from_struct, to_struct
from trimtab.trial import Measurement, Note, Trial, TrialState

_VERDICT_LEVELS = {
    pb.VerdictLevel.Value("VERDICT_LEVEL_" + level.upper().replace(" ", "_")): level for level in VerdictLevel
}
_STUDY_STATES = {state: pb.StudyState.Value(f"STUDY_STATE_{state}") for state in StudyState}
_TRIAL_STATES = {state: pb.TrialState.Value(f"TRIAL_STATE_{state}") for state in TrialState}
_STUDY_STATES_BACK = {number: state for state, number in _STUDY_STATES.items()}
_TRIAL_STATES_BACK = {number: state for state, number in _TRIAL_STATES.items()}
State = TypeVar("State", StudyState, TrialState)
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
# The longest time that a Duration message can hold: about 10,000 years.
_LONGEST_SECONDS = 315_576_000_000
_LIMITS = ("max_trials", "max_time", "max_node_hours")


# --- values


def to_value(field: str, value: object) -> pb.Value:
    """Return a Python or numpy scalar as a message. Raises InvalidInput for anything else."""
    plain = _plain(value)
    match plain:
        case bool():  # before int, because bool is a subclass of int
            return pb.Value(flag=plain)
        case int():
            return pb.Value(integer=to_int(field, plain))
        case float():
            return pb.Value(number=plain)
        case str():
            return pb.Value(text=plain)
    raise InvalidInput.of(field, value, "a number, a string or a boolean")


def from_value(value: pb.Value) -> Scalar:
    """Return the Python value of a message."""
    match value.WhichOneof("kind"):
        case "number":
            return value.number
        case "integer":
            return value.integer
        case "flag":
            return value.flag
        case _:
            return value.text


def to_params(field: str, space: Sequence[Parameter], values: Mapping[str, object]) -> dict[str, pb.Value]:
    """Return a configuration, or a part of one, as messages. The service checks names and values."""
    plain: dict[str, Scalar] = {name: _scalar(f"{field}.{name}", value) for name, value in values.items()}
    return {name: to_value(f"{field}.{name}", value) for name, value in cast(space, plain).items()}


def to_metrics(values: Mapping[str, object]) -> dict[str, float]:
    """Return metric values as floats. The service checks that they are finite and complete."""
    return {name: to_float(f"metrics.{name}", value) for name, value in values.items()}


def to_float(field: str, value: object) -> float:
    """Return a number as a float. Raises InvalidInput for anything else, also for a string."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (SupportsFloat, SupportsIndex)):
        raise InvalidInput.of(field, value, "a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput.of(field, value, "a number") from error


def to_int(field: str, value: object) -> int:
    """Return the value as an int. Raises InvalidInput if it is not a whole number, or does not fit in 64 bits."""
    try:
        whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidInput.of(field, value, "a whole number") from error
    if not _MIN_INT64 <= whole <= _MAX_INT64:
        raise InvalidInput.of(field, value, "a whole number of 64 bits")
    return whole


def to_duration(field: str, value: object) -> Duration:
    """Return a time in seconds as a message. Raises InvalidInput if it is too long or not a number."""
    seconds = to_float(field, value)
    if not abs(seconds) <= _LONGEST_SECONDS:
        raise InvalidInput.of(field, value, "a number of seconds")
    message = Duration()
    message.FromNanoseconds(round(seconds * 1e9))
    return message


def _plain(value: object) -> object:
    # numpy scalars return a Python value from item(). float64 is a subclass of float, int64 is not one of int.
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        return item()
    return value


def _scalar(field: str, value: object) -> Scalar:
    return from_value(to_value(field, value))


def _seconds(message: Duration) -> float:
    return message.ToNanoseconds() / 1e9


def from_time(message: Timestamp) -> datetime | None:
    """Return a time with its zone, None for a message that is not set."""
    if not message.seconds and not message.nanos:
        return None
    return message.ToDatetime(tzinfo=UTC)


# --- the space


def to_parameter(field: str, parameter: Parameter) -> pb.Parameter:
    """Return a parameter as a message. Raises InvalidInput for values that a message cannot hold."""
    if not isinstance(parameter, Parameter):
        raise InvalidInput.of(field, parameter, "trimtab.Float, Int, Ordinal, Categorical or Bool")
    if not isinstance(parameter.name, str):
        raise InvalidInput.of(f"{field}.name", parameter.name, "a string")
    if not isinstance(parameter.unit, str):
        raise InvalidInput.of(f"{field}.unit", parameter.unit, "a string")
    message = pb.Parameter(name=parameter.name, unit=parameter.unit)
    match parameter:
        case Float():
            real = message.float
            real.min = to_float(f"{field}.min", parameter.min)
            real.max = to_float(f"{field}.max", parameter.max)
            real.log = parameter.log
            if parameter.step is not None:
                real.step = to_float(f"{field}.step", parameter.step)
            if parameter.factor is not None:
                real.factor = to_float(f"{field}.factor", parameter.factor)
        case Int():
            whole = message.integer
            whole.min = to_int(f"{field}.min", parameter.min)
            whole.max = to_int(f"{field}.max", parameter.max)
            whole.log = parameter.log
            if parameter.step is not None:
                whole.step = to_int(f"{field}.step", parameter.step)
            if parameter.factor is not None:
                whole.factor = to_float(f"{field}.factor", parameter.factor)
        case Ordinal():
            message.ordinal.CopyFrom(pb.Values(values=_to_list(f"{field}.values", parameter.values)))
        case Categorical():
            message.categorical.CopyFrom(pb.Values(values=_to_list(f"{field}.values", parameter.values)))
        case Bool():
            message.boolean.SetInParent()
    if parameter.default is not None:
        default = parameter.cast(_scalar(f"{field}.default", parameter.default))
        message.default.CopyFrom(to_value(f"{field}.default", default))
    requirement = condition(parameter)
    if requirement is not None:
        parent, values = requirement
        message.condition.CopyFrom(
            pb.Condition(parent=parent, values=_to_list(f"{field}.when", values)),
        )
    return message


def _to_list(field: str, values: Sequence[Scalar]) -> list[pb.Value]:
    return [to_value(f"{field}[{index}]", value) for index, value in enumerate(values)]


def from_parameter(message: pb.Parameter) -> Parameter:
    """Return a parameter as the user would write it."""
    name = message.name
    when = None
    if message.HasField("condition"):
        when = (message.condition.parent, tuple(from_value(value) for value in message.condition.values))
    default = from_value(message.default) if message.HasField("default") else None
    match message.WhichOneof("kind"):
        case "float":
            real = message.float
            return Float(
                name,
                real.min,
                real.max,
                log=real.log,
                step=real.step if real.HasField("step") else None,
                factor=real.factor if real.HasField("factor") else None,
                default=None if default is None else float(default),
                when=when,
                unit=message.unit,
            )
        case "integer":
            whole = message.integer
            return Int(
                name,
                whole.min,
                whole.max,
                log=whole.log,
                step=whole.step if whole.HasField("step") else None,
                factor=whole.factor if whole.HasField("factor") else None,
                default=None if default is None else int(default),
                when=when,
                unit=message.unit,
            )
        case "ordinal":
            return Ordinal(
                name,
                [from_value(value) for value in message.ordinal.values],
                default=default,
                when=when,
                unit=message.unit,
            )
        case "categorical":
            values = [from_value(value) for value in message.categorical.values]
            return Categorical(name, values, default=default, when=when, unit=message.unit)
        case _:
            return Bool(name, default=None if default is None else bool(default), when=when, unit=message.unit)


# --- studies


def to_spec(spec: StudySpec) -> pb.StudySpec:
    """Return a study's specification as a message."""
    message = pb.StudySpec(
        space=[to_parameter(f"space[{index}]", parameter) for index, parameter in enumerate(spec.space)],
        constraints=spec.constraints,
        objectives=[_to_objective(f"objectives[{index}]", item) for index, item in enumerate(spec.objectives)],
        algorithm=pb.Algorithm(name=spec.algorithm, options=_to_options("algorithm_options", spec.algorithm_options)),
        seed=to_int("seed", spec.seed),
        noisy=spec.noisy,
        description=spec.description,
    )
    if spec.max_trials is not None:
        message.budget.max_trials = to_int32("max_trials", spec.max_trials)
    if spec.max_time is not None:
        message.budget.max_time.CopyFrom(to_duration("max_time", spec.max_time))
    if spec.max_node_hours is not None:
        message.budget.max_node_hours = to_float("max_node_hours", spec.max_node_hours)
    message.outcome_constraints.extend(spec.outcome_constraints)
    if spec.resampling is not None:
        message.resampling.CopyFrom(_to_policy("resampling", spec.resampling))
    if spec.estimator is not None:
        message.estimator.CopyFrom(_to_policy("estimator", spec.estimator))
    message.pruning.extend(_to_policy(f"pruning[{index}]", policy) for index, policy in enumerate(spec.pruning))
    if spec.stopping is not None:
        message.stopping.CopyFrom(_to_options("stopping", spec.stopping))
    if spec.final_check is False:
        message.final_check.off = True
    elif spec.final_check is not None:
        message.final_check.CopyFrom(to_final_check(spec.final_check))
    if spec.execution is not None:
        message.execution.component = spec.execution.component
        message.execution.digest = spec.execution.digest
        message.execution.application = spec.execution.application
        message.execution.parallelism = to_int32("parallelism", spec.execution.parallelism)
        if spec.execution.trial_timeout is not None:
            message.execution.trial_timeout.CopyFrom(to_duration("trial_timeout", spec.execution.trial_timeout))
        placement = spec.execution.placement
        message.execution.placement.exclusive = placement.exclusive
        message.execution.placement.spread = placement.spread
    if spec.trial_timeout is not None:
        message.trial_timeout.CopyFrom(to_duration("trial_timeout", spec.trial_timeout))
    message.start_from.extend(spec.start_from)
    for place, variable in enumerate(spec.context):
        values = _to_list(f"context[{place}].values", variable.values)
        cheaper = _to_list(f"context[{place}].cheaper", variable.cheaper)
        message.context.add(name=variable.name, values=values, cheaper=cheaper)
    if spec.job is not None:
        nodes = 0 if spec.job.nodes is None else to_int32("job.nodes", spec.job.nodes)
        texts = {name: getattr(spec.job, name) for name in ("user", "name", "program", "command")}
        message.job.CopyFrom(pb.JobMetadata(**texts, nodes=nodes))
    return message


def to_budget(changes: Mapping[str, float | None]) -> tuple[pb.Budget, FieldMask]:
    """Return the changed fields of a budget (max_time in seconds) and their names. Raises InvalidInput."""
    message = pb.Budget()
    for name, value in changes.items():
        if name not in _LIMITS:
            raise InvalidInput.of("budget", name, ", ".join(_LIMITS))
        if value is None:
            continue
        if name == "max_trials":
            message.max_trials = to_int32(name, value)
        elif name == "max_time":
            message.max_time.CopyFrom(to_duration(name, value))
        else:
            message.max_node_hours = to_float(name, value)
    return message, FieldMask(paths=list(changes))


def to_range(field: str, given: object) -> pb.Range:
    """Return a parameter's range as a message. Raises InvalidInput for values that a message cannot hold."""
    allowed = '{"min": ..., "max": ...} or {"values": [...]}'
    if not isinstance(given, Mapping) or not given.keys() <= {"min", "max", "values"}:
        raise InvalidInput.of(field, given, allowed)
    message = pb.Range()
    for name in ("min", "max"):
        if name in given:
            getattr(message, name).CopyFrom(to_value(f"{field}.{name}", given[name]))
    if "values" in given:
        values = given["values"]
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidInput.of(f"{field}.values", values, "a list of numbers, strings or booleans")
        message.values.SetInParent()
        message.values.values.extend(_to_list(f"{field}.values", values))
    return message


def from_spec(message: pb.StudySpec) -> StudySpec:
    """Return the specification in a message."""
    execution = None
    if message.HasField("execution"):
        timeout = message.execution.HasField("trial_timeout")
        execution = Execution(
            component=message.execution.component,
            digest=message.execution.digest,
            application=message.execution.application,
            parallelism=message.execution.parallelism,
            trial_timeout=_seconds(message.execution.trial_timeout) if timeout else None,
            placement=Placement(message.execution.placement.exclusive, message.execution.placement.spread),
        )
    return StudySpec(
        space=tuple(from_parameter(parameter) for parameter in message.space),
        objectives=tuple(_from_objective(objective) for objective in message.objectives),
        constraints=tuple(message.constraints),
        algorithm=message.algorithm.name,
        algorithm_options=from_struct(message.algorithm.options),
        seed=message.seed,
        noisy=message.noisy,
        max_trials=message.budget.max_trials if message.budget.HasField("max_trials") else None,
        max_time=_seconds(message.budget.max_time) if message.budget.HasField("max_time") else None,
        execution=execution,
        max_node_hours=message.budget.max_node_hours if message.budget.HasField("max_node_hours") else None,
        outcome_constraints=tuple(message.outcome_constraints),
        resampling=_from_policy(message.resampling) if message.HasField("resampling") else None,
        estimator=_from_policy(message.estimator) if message.HasField("estimator") else None,
        pruning=tuple(_from_policy(policy) for policy in message.pruning),
        stopping=from_struct(message.stopping) if message.HasField("stopping") else None,
        final_check=_from_final_check(message.final_check) if message.HasField("final_check") else None,
        start_from=tuple(message.start_from),
        description=message.description,
        trial_timeout=_seconds(message.trial_timeout) if message.HasField("trial_timeout") else None,
        job=_from_job_metadata(message.job) if message.HasField("job") else None,
        context=tuple(
            ContextVariable(one.name, tuple(map(from_value, one.values)), tuple(map(from_value, one.cheaper)))
            for one in message.context
        ),
    )


def _from_job_metadata(message: pb.JobMetadata) -> JobMetadata:
    return JobMetadata(message.user, message.name, message.program, message.command, message.nodes or None)


def from_status(message: pb.Study) -> StudyStatus:
    """Return the status of a study."""
    return StudyStatus(
        state=_STUDY_STATES_BACK[message.state],
        reason=message.state_reason,
        revision=message.revision,
        trial_count=message.trial_count,
        finished_count=message.finished_count,
        space_exhausted=message.space_exhausted,
        created_at=from_time(message.created_at),
        updated_at=from_time(message.updated_at),
        algorithm_choice=Choice(message.algorithm_choice.name, message.algorithm_choice.reason)
        if message.HasField("algorithm_choice")
        else None,
        search_end_reason=message.search_end_reason,
        space_version=message.space_version,
        started_from=tuple(StartedFrom(one.study, one.taken, one.passed_over) for one in message.started_from),
        fixed=_from_values(message.fixed),
        removed=_from_values(message.removed),
        imputed=_from_values(message.imputed),
        space_edits=tuple(map(_from_edit, message.space_edits)),
    )


def _from_edit(message: pb.SpaceEdit) -> SpaceEdit:
    return SpaceEdit(
        version=message.version,
        added=tuple(message.added),
        removed=_from_values(message.removed),
        fixed=_from_values(message.fixed),
        freed=tuple(message.freed),
        trials=from_earlier_trials(message.trials),
        actor=message.actor,
        made_at=from_time(message.made_at),
    )


def from_earlier_trials(message: pb.EarlierTrials) -> EarlierTrials:
    """Return how the trials of a study count after an edit of its space."""
    return EarlierTrials(
        total=message.total,
        used=message.used,
        imputed=message.imputed,
        unfinished=message.unfinished,
        left_out=dict(message.left_out),
        values=_from_values(message.values),
        text=message.text,
    )


def _from_values(values: Mapping[str, pb.Value]) -> Params:
    return {name: from_value(value) for name, value in values.items()}


def to_edit(
    study: str,
    space: Sequence[Parameter],
    *,
    add: Sequence[Parameter],
    remove: Sequence[str] | Mapping[str, object],
    fix: Mapping[str, object],
    free: Sequence[str],
) -> pb.EditSpaceRequest:
    """Return the message for an edit of a space. Raises InvalidInput for values that a message cannot hold."""
    for name, names in (("remove", remove), ("free", free)):
        if isinstance(names, str):
            raise InvalidInput.of(name, names, "a list of names of parameters")
    message = pb.EditSpaceRequest(
        study=study,
        add=[to_parameter(f"add[{index}]", parameter) for index, parameter in enumerate(add)],
        fix=to_params("fix", space, fix),
        free=free,
    )
    given = remove if isinstance(remove, Mapping) else {}
    values = to_params("remove", space, {name: value for name, value in given.items() if value is not None})
    for name in remove:
        # A value that is not set stands for the parameter's default.
        message.remove[name].CopyFrom(values.get(name, pb.Value()))
    return message


def to_final_check(check: FinalCheck) -> pb.FinalCheck:
    """Return the message for the settings of a final check. Raises InvalidInput."""
    if not isinstance(check, FinalCheck):
        raise InvalidInput.of("final_check", check, "True, False or trimtab.FinalCheck(max_trials=20)")
    message = pb.FinalCheck()
    if check.width is not None:
        message.width = to_float("final_check.width", check.width)
    if check.max_trials is not None:
        message.max_trials = to_int32("final_check.max_trials", check.max_trials)
    if check.level is not None:
        message.level = to_float("final_check.level", check.level)
    if check.effects is not None:
        message.effects = to_int32("final_check.effects", check.effects)
    return message


def from_context_table(study: str, message: pb.GetBestTrialsResponse) -> ContextTable:
    """Return the table of recommendations of a study with a context; it has no rows for another study."""
    rows = [
        ContextRow(
            context=_from_values(row.context),
            settings=_from_values(row.settings),
            is_default=row.is_default,
            best=_from_values(row.best) if row.HasField("verdict") else None,
            verdict=from_verdict(row.verdict) if row.HasField("verdict") else None,
        )
        for row in message.contexts
    ]
    return ContextTable(study, message.revision, tuple(rows))


def to_context(given: Observed) -> tuple[ContextVariable, ...]:
    """Return the context variables that a user names, with or without their values in the table and cheaper ones."""
    if isinstance(given, str):
        raise InvalidInput.of("context", given, 'a list such as ["load"] or a dict such as {"hit": [0.6, 0.9]}')
    named = given if isinstance(given, Mapping) else dict.fromkeys(given)
    return tuple(_to_variable(name, values) for name, values in named.items())


def _to_variable(name: str, given: Sequence[Scalar] | Mapping[str, Sequence[Scalar]] | None) -> ContextVariable:
    named = given if isinstance(given, Mapping) else {"at": given or ()}
    for key, values in named.items():
        if key not in ("at", "cheaper"):
            raise InvalidInput.of(f"context.{name}.{key}", values, "only the keys at and cheaper")
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidInput.of(f"context.{name}.{key}", values, "a list of values, such as [1, 2]")
    return ContextVariable(name, tuple(named.get("at", ())), tuple(named.get("cheaper", ())))


def from_verdict(message: pb.Verdict) -> Verdict:
    """Return the verdict on a study. A level of a newer service counts as not yet known."""
    return Verdict(
        text=message.text,
        level=_VERDICT_LEVELS.get(message.level, VerdictLevel.UNKNOWN),
        value=message.value,
        runs=message.runs,
        default=message.default if message.HasField("default") else None,
        default_runs=message.default_runs,
        gain=message.gain if message.HasField("gain") else None,
        low=message.low if message.HasField("low") else None,
        high=message.high if message.HasField("high") else None,
        trials=message.trials,
        measured=message.measured,
        doubtful=message.doubtful,
        effects=_from_effects(message.effects) if message.HasField("effects") else None,
    )


def from_pareto_verdict(message: pb.ParetoVerdict) -> ParetoVerdict:
    """Return the verdict on a study with several objectives."""
    return ParetoVerdict(
        text=message.text,
        level=_VERDICT_LEVELS.get(message.level, VerdictLevel.UNKNOWN),
        gain=_known(message, "gain"),
        low=_known(message, "low"),
        high=_known(message, "high"),
        trials=message.trials,
        members=tuple(
            ParetoMember(
                params={name: from_value(value) for name, value in sorted(one.params.items())},
                runs=one.runs,
                objectives=tuple(
                    ObjectiveGain(
                        gain.metric,
                        *(_known(gain, name) for name in ("value", "default", "gain", "low", "high")),
                    )
                    for gain in one.objectives
                ),
                broken=one.broken,
            )
            for one in message.members
        ),
        measured=message.measured,
        doubtful=message.doubtful,
        confidence=message.confidence,
    )


def _known(message: Message, name: str) -> float | None:
    """Return an optional number; None if it is absent."""
    return float(getattr(message, name)) if message.HasField(name) else None


def _from_effects(message: pb.Effects) -> Effects:
    parameters = tuple(
        ParameterEffect(
            name=one.name,
            default=from_value(one.default) if one.HasField("default") else None,
            found=from_value(one.found),
            effect=one.effect,
            low=one.low,
            high=one.high,
            matters=one.matters,
            together=tuple(one.together),
        )
        for one in message.parameters
    )
    smallest = None
    if message.HasField("smallest"):
        one = message.smallest
        smallest = SmallestConfiguration(
            params={name: from_value(value) for name, value in sorted(one.params.items())},
            gain=one.gain,
            low=one.low,
            high=one.high,
            kept=one.kept,
            kept_low=one.kept_low,
            kept_high=one.kept_high,
        )
    return Effects(message.text, message.trials, message.tolerance, parameters, smallest)


def from_recommendation(space: Sequence[Parameter], message: pb.Recommendation) -> Recommendation:
    """Return the recommended configuration, with its parameters in the order of the space."""
    interval = message.HasField("low") and message.HasField("high")
    return Recommendation(
        params=_from_params(space, message.params),
        value=message.value,
        low=message.low if interval else None,
        high=message.high if interval else None,
        trials=tuple(message.trials),
    )


def to_study_states(states: Sequence[StudyState | str]) -> list[pb.StudyState.ValueType]:
    """Return states of studies, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_STUDY_STATES[_member(StudyState, f"states[{index}]", state)] for index, state in enumerate(states)]


def to_trial_states(states: Sequence[TrialState | str]) -> list[pb.TrialState.ValueType]:
    """Return states of trials, given as states or names in upper or lower case. Raises InvalidInput."""
    return [_TRIAL_STATES[_member(TrialState, f"states[{index}]", state)] for index, state in enumerate(states)]


def _member(kind: type[State], field: str, state: str) -> State:
    try:
        return kind(state.upper())
    except ValueError as error:
        raise InvalidInput.of(field, state, ", ".join(kind)) from error


def to_int32(field: str, value: object) -> int:
    """Return a whole number that a message can hold in 32 bits. Raises InvalidInput."""
    whole = to_int(field, value)
    if not -(2**31) <= whole < 2**31:
        raise InvalidInput.of(field, value, "a whole number of 32 bits")
    return whole


def _to_objective(field: str, objective: Objective) -> pb.Objective:
    match objective:
        case Minimize():
            goal = pb.Objective.GOAL_MINIMIZE
        case Maximize():
            goal = pb.Objective.GOAL_MAXIMIZE
        case _:
            raise InvalidInput.of(field, objective, "trimtab.Minimize(METRIC) or trimtab.Maximize(METRIC)")
    return pb.Objective(metric=objective.metric, goal=goal, unit=objective.unit)


def _from_objective(message: pb.Objective) -> Objective:
    kind = Maximize if message.goal == pb.Objective.GOAL_MAXIMIZE else Minimize
    return kind(message.metric, message.unit)


def _to_policy(field: str, policy: Policy) -> pb.Policy:
    if not isinstance(policy, Policy):
        raise InvalidInput.of(field, policy, "a policy's name or trimtab.Policy(NAME, OPTION=VALUE)")
    return pb.Policy(name=policy.name, options=_to_options(f"{field}.options", policy.options))


def _from_policy(message: pb.Policy) -> Policy:
    return Policy(message.name, **from_struct(message.options))


def _from_final_check(message: pb.FinalCheck) -> FinalCheck | Literal[False]:
    if message.off:
        return False
    return FinalCheck(
        width=message.width if message.HasField("width") else None,
        max_trials=message.max_trials if message.HasField("max_trials") else None,
        level=message.level if message.HasField("level") else None,
        effects=message.effects if message.HasField("effects") else None,
    )


def _to_options(field: str, options: Mapping[str, JsonValue]) -> Struct:
    try:
        return to_struct(options)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput.of(field, options, "values that JSON can represent") from error


# --- trials


def from_trial(space: Sequence[Parameter], message: pb.Trial) -> Trial:
    """Return a trial, with its parameters in the order of the space."""
    return Trial(
        study=message.study,
        number=message.number,
        state=_TRIAL_STATES_BACK[message.state],
        params=_from_params(space, message.params),
        metrics=dict(message.metrics),
        measurements=tuple(_from_measurement(measurement) for measurement in message.measurements),
        reason=message.reason,
        client_id=message.client_id,
        agent=message.agent,
        node=message.node,
        doubt=message.doubt,
        machine=message.machine,
        attempt=message.attempt,
        origin=message.origin,
        created_at=from_time(message.created_at),
        started_at=from_time(message.started_at),
        finished_at=from_time(message.finished_at),
        log=message.log,
        seconds=_seconds(message.elapsed) if message.HasField("elapsed") else None,
    )


def _from_params(space: Sequence[Parameter], message: Mapping[str, pb.Value]) -> Params:
    """Return a configuration in the order of the space, then parameters that the space lacks.

    Those are in trials from before an edit of the space, and in later ones if this program does not know of the edit.
    """
    values = cast(space, {name: from_value(value) for name, value in sorted(message.items())})
    known = {parameter.name: values[parameter.name] for parameter in space if parameter.name in values}
    return {**known, **values}


def from_note(message: pb.Note) -> Note:
    """Return a note."""
    return Note(
        study=message.study,
        trial=message.trial or None,
        text=message.text,
        tags=tuple(message.tags),
        attributes={name: from_value(value) for name, value in sorted(message.attributes.items())},
        changed_by=message.changed_by,
        changed_at=from_time(message.changed_at) if message.HasField("changed_at") else None,
    )


def _from_measurement(message: pb.Measurement) -> Measurement:
    elapsed = _seconds(message.elapsed) if message.HasField("elapsed") else None
    return Measurement(message.step, dict(message.metrics), elapsed)


# --- identities


def from_identity(message: identity_pb.WhoAmIResponse) -> Identity:
    """Return the identity of the caller."""
    return Identity(
        actor=message.actor,
        tenant=message.tenant,
        role=message.role,
        scopes=tuple(message.scopes),
        study=message.study or None,
        credential=message.credential,
    )


def from_api_token(message: identity_pb.ApiToken) -> ApiToken:
    """Return an API token."""
    return ApiToken(
        id=message.id,
        name=message.name,
        hint=message.hint,
        owner=message.owner,
        role=message.role,
        scopes=tuple(message.scopes),
        study=message.study or None,
        created_at=from_time(message.created_at),
        expires_at=from_time(message.expires_at),
        last_used_at=from_time(message.last_used_at),
        sign_in_by=from_time(message.sign_in_by),
    )


def from_audit_entry(message: identity_pb.AuditEntry) -> AuditEntry:
    """Return an entry of the audit trail."""
    return AuditEntry(
        id=message.id,
        at=from_time(message.at),
        actor=message.actor,
        credential=message.credential,
        address=message.address,
        action=message.action,
        target=message.target,
        detail=json.loads(message.detail),
        before=json.loads(message.before),
        after=json.loads(message.after),
    )


# --- agents


def from_agent(message: pb.Agent) -> Agent:
    """Return an agent with its components."""
    return Agent(
        id=message.id,
        name=message.name,
        version=message.version,
        online=message.state == pb.AGENT_STATE_ONLINE,
        slots=message.slots,
        running=message.running,
        labels=dict(message.labels),
        registered_at=from_time(message.registered_at),
        last_seen_at=from_time(message.last_seen_at),
        components=tuple(_from_component(component) for component in message.components),
    )


def from_best_settings(message: pb.BestSettings) -> BestSettings:
    """Return the best known settings of a component for one application."""
    return BestSettings(
        application=message.application,
        study=message.study,
        objective=_from_objective(message.objective),
        params={name: from_value(value) for name, value in sorted(message.params.items())},
        verdict=from_verdict(message.verdict),
        digest=message.digest,
        machine=message.machine,
        elsewhere=message.elsewhere,
    )


def _from_component(message: pb.Component) -> Component:
    return Component(
        name=message.name,
        digest=message.digest,
        applications=tuple(message.applications),
        description=message.description,
        space=tuple(from_parameter(parameter) for parameter in message.space),
        metrics=tuple(message.metrics),
    )
