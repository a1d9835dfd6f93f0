"""Translate messages to plain Python and back. The code that uses a value checks it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from google.protobuf import struct_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from service._gen import agent_pb2, tuning_pb2
from service.core.errors import InvalidInput, JsonValue
from service.core.interference import Interference
from service.fleet.grants import Grant
from service.fleet.leases import plain
from service.fleet.models import Agent, ComponentFile
from service.fleet.runs import Outcome
from service.rpc import live_converters
from service.rpc.values import plain_value, plain_values, set_value, set_values
from service.studies.edit_records import EarlierTrials
from service.studies.models import Measurement, Study, Trial
from service.studies.notes import Written
from service.studies.selectors import Changes, OperationDetail, TrialDetail
from service.studies.spec_keys import Key, own_keys, record_of
from service.studies.specs import FINAL_CHECK, Budget, StudySpec, budget_of, spec_of
from service.trials.tell import Reported

Json = dict[str, Any]


def numbers_of(enum: Any, word: Callable[[str], str] = str.lower) -> dict[str, Any]:
    """Return the numbers of an enumeration by their words: minimize for GOAL_MINIMIZE."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {word(one.name.removeprefix(prefix)): one.number for one in enum.values if one.number != 0}


STUDY_STATES = numbers_of(tuning_pb2.StudyState.DESCRIPTOR, str.upper)
TRIAL_STATES = numbers_of(tuning_pb2.TrialState.DESCRIPTOR, str.upper)
OPERATION_STATES = numbers_of(tuning_pb2.OperationState.DESCRIPTOR, str.upper)
OUTCOMES = numbers_of(agent_pb2.SettleLeaseRequest.Outcome.DESCRIPTOR)
GOALS = numbers_of(tuning_pb2.Objective.Goal.DESCRIPTOR)
_SPEC = record_of(StudySpec).keys


# --- values, times, enumerations


def duration(seconds: float) -> Duration:
    """Return a length of time as a message."""
    whole = int(seconds)
    return Duration(seconds=whole, nanos=round((seconds - whole) * 1e9))


def seconds(message: Duration) -> float:
    """Return a length of time in seconds."""
    return message.seconds + message.nanos / 1e9


def seconds_or_none(message: Message, field: str) -> float | None:
    """Return a field of type Duration in seconds, or None if it is not set."""
    return seconds(getattr(message, field)) if message.HasField(field) else None


def interference_or_none(message: agent_pb2.SettleLeaseRequest) -> Interference | None:
    """Return the interference in a message, or None if it is not set. A number that is not finite counts as unknown."""
    if not message.HasField("interference"):
        return None
    found = message.interference
    numbers = {field.name: value for field, value in found.ListFields() if field.name != "unaffected"}
    return Interference.from_json({**numbers, "unaffected": found.unaffected})


def set_time(message: Timestamp, time: datetime) -> None:
    """Write a time into a message, exact to the microsecond."""
    message.seconds = int(time.timestamp())
    message.nanos = time.microsecond * 1000


def study_state(number: int, field: str = "state") -> str:
    """Return the name of a study's state."""
    return _name_of(STUDY_STATES, number, field)


def study_states(numbers: Iterable[int]) -> list[str]:
    """Return the names of states of studies."""
    return [study_state(number, f"states[{index}]") for index, number in enumerate(numbers)]


def added_state(number: int) -> str:
    """Return the state of a trial that a user adds; unspecified means COMPLETED. Raises InvalidInput."""
    return _name_of(TRIAL_STATES, number or TRIAL_STATES["COMPLETED"], "state")


def trial_states(numbers: Iterable[int]) -> list[str]:
    """Return the names of states of trials."""
    return [_name_of(TRIAL_STATES, number, f"states[{index}]") for index, number in enumerate(numbers)]


def outcome(number: int) -> Outcome:
    """Return the name of an outcome."""
    return cast(Outcome, _name_of(OUTCOMES, number, "outcome"))


def _name_of(numbers: Mapping[str, int], number: int, field: str) -> str:
    for name, candidate in numbers.items():
        if candidate == number:
            return name
    raise InvalidInput(field, number, ", ".join(f"{candidate} ({name})" for name, candidate in numbers.items()))


# --- specs: a field that the caller left out is left out here too, so that the defaults of the domain apply


def record_json(message: Message, keys: Sequence[Key], where: str = "") -> Json:
    """Return the JSON of a message that has the fields of these keys. `where` is its place in the request."""
    data: Json = {}
    for key in keys:
        if not key.in_message:
            data[key.name] = record_json(message, key.kind.keys, where)
            continue
        field = message.DESCRIPTOR.fields_by_name[key.in_message]
        enum, value, place = field.enum_type, getattr(message, field.name), f"{where}{field.name}"
        if field.is_repeated:
            items = [_item_json(key, enum, item, f"{place}[{index}]") for index, item in enumerate(value)]
            if items or key.required:
                data[key.name] = items
        elif field.has_presence:
            if message.HasField(field.name):
                data[key.name] = _item_json(key, enum, value, place)
        # A number or a text that is empty cannot be told from one that is left out. A flag has no default of its own.
        elif value or key.required or isinstance(value, bool):
            data[key.name] = _item_json(key, enum, value, place)
    return data


def _item_json(key: Key, enum: Any, value: Any, place: str) -> Any:
    if enum is not None:
        return _name_of(numbers_of(enum), value, place)
    match value:
        case Duration():
            return seconds(value)
        case struct_pb2.Struct():
            return _plain_struct(value)
        case tuning_pb2.Value():
            return plain_value(place, value)
        case tuning_pb2.Parameter():
            return parameter_json(place, value)
        case tuning_pb2.FinalCheck():
            return final_check_json(value)
        case Message():
            return record_json(value, key.kind.keys, f"{place}.")
    return value


def set_record(message: Message, keys: Sequence[Key], data: Mapping[str, Any]) -> None:
    """Write the JSON of an object into a message that has the fields of these keys."""
    for key in keys:
        value = data.get(key.name)
        if value is None:
            continue
        if not key.in_message:
            set_record(message, key.kind.keys, value)
            continue
        field = message.DESCRIPTOR.fields_by_name[key.in_message]
        target = getattr(message, field.name)
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                _set_item(target.add() if field.is_repeated else target, key, item)
        elif field.is_repeated:
            target.extend(value)
        else:
            setattr(message, field.name, value if field.enum_type is None else numbers_of(field.enum_type)[value])


def _set_item(message: Message, key: Key, value: Any) -> None:
    match message:
        case Duration():
            message.CopyFrom(duration(value))
        case struct_pb2.Struct():
            message.update(value)
        case tuning_pb2.Value():
            set_value(message, value)
        case tuning_pb2.Parameter():
            message.CopyFrom(parameter_message(value))
        case _:
            set_record(message, key.kind.keys, value)


def final_check_json(check: tuning_pb2.FinalCheck) -> Json | None:
    """Return the settings of a final check in their JSON form; None if it is off."""
    return None if check.off else record_json(check, FINAL_CHECK.keys)


def spec_json(spec: tuning_pb2.StudySpec) -> Json:
    """Return a study's spec in its JSON form."""
    return record_json(spec, _SPEC)


def budget_changes(budget: tuning_pb2.Budget, fields: FieldMask) -> Json:
    """Return the selected fields of a budget in their JSON form. Raises InvalidInput."""
    names = {key.in_message: key.name for key in own_keys(Budget)}
    for path in fields.paths:
        if path not in names:
            raise InvalidInput("fields", path, ", ".join(names))
    data = record_json(budget, own_keys(Budget))
    return {names[path]: data.get(names[path]) for path in fields.paths}


def ranges_json(ranges: Mapping[str, tuning_pb2.Range]) -> Json:
    """Return ranges by parameter, each with the fields that are set."""
    found: Json = {}
    for name, given in ranges.items():
        where = f"ranges.{name}"
        found[name] = {}
        if given.HasField("min"):
            found[name]["min"] = plain_value(f"{where}.min", given.min)
        if given.HasField("max"):
            found[name]["max"] = plain_value(f"{where}.max", given.max)
        if given.HasField("values"):
            found[name]["values"] = [
                plain_value(f"{where}.values[{index}]", value) for index, value in enumerate(given.values.values)
            ]
    return found


def edit_json(request: tuning_pb2.EditSpaceRequest) -> Json:
    """Return an edit of a space in its JSON form."""
    return {
        "add": [parameter_json(f"add[{index}]", parameter) for index, parameter in enumerate(request.add)],
        # A value that is not set stands for the parameter's default.
        "remove": {
            name: plain_value(f"remove.{name}", value) if value.WhichOneof("kind") else None
            for name, value in request.remove.items()
        },
        "fix": plain_values("fix", request.fix),
        "free": list(request.free),
    }


def parameter_json(field: str, parameter: tuning_pb2.Parameter) -> Json:
    """Return a parameter in its JSON form. `field` is its place in the request."""
    kind = parameter.WhichOneof("kind")
    data: Json = {"name": parameter.name}
    match kind:
        case "float" | "integer":
            limits: Any = getattr(parameter, kind)
            data["type"] = "float" if kind == "float" else "int"
            data |= {name: getattr(limits, name) for name in ("min", "max", "log")}
            data |= {name: getattr(limits, name) for name in ("step", "factor") if limits.HasField(name)}
        case "ordinal" | "categorical":
            values: tuning_pb2.Values = getattr(parameter, kind)
            data |= {
                "type": kind,
                "values": [plain_value(f"{field}.values[{index}]", value) for index, value in enumerate(values.values)],
            }
        case "boolean":
            data["type"] = "bool"
        case None:
            raise InvalidInput(field, parameter.name, "a kind: float, integer, ordinal, categorical or boolean")
    if parameter.unit:
        data["unit"] = parameter.unit
    if parameter.optional:
        data["optional"] = True
    if parameter.HasField("default"):
        data["default"] = plain_value(f"{field}.default", parameter.default)
    if parameter.HasField("condition"):
        data["condition"] = {
            "parent": parameter.condition.parent,
            "values": [
                plain_value(f"{field}.condition.values[{index}]", value)
                for index, value in enumerate(parameter.condition.values)
            ],
        }
    return data


def component_json(field: str, component: agent_pb2.Component) -> Json:
    """Return a component of an agent in its JSON form."""
    return {
        "name": component.name,
        "digest": component.digest,
        "applications": list(component.applications),
        "description": component.description,
        "space": [
            parameter_json(f"{field}.space[{index}]", parameter) for index, parameter in enumerate(component.space)
        ],
        "metrics": list(component.metrics),
        "file_digest": component.file_digest,
        "injected": [
            {
                "text": one.text,
                "application": one.application,
                "parameter": one.parameter,
                "values": [plain_value(f"{field}.injected.values", value) for value in one.values],
            }
            for one in component.injected
        ],
        "recipe": component.recipe,
        **({"live": live_converters.component_json(component.live)} if component.HasField("live") else {}),
    }


def component_file(file: ComponentFile) -> agent_pb2.GetComponentFileResponse:
    """Return a component's file that was written in the console, as a message."""
    message = agent_pb2.GetComponentFileResponse(
        name=file.name, number=file.number, text=file.text, digest=file.sha256, author=file.author
    )
    set_time(message.written_at, file.written_at)
    return message


def _plain_struct(struct: struct_pb2.Struct) -> Json:
    return {name: _plain_json(value) for name, value in struct.fields.items()}


def _plain_json(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "number_value":
            # A Struct has only doubles, so 5.0 may have been 5. Code that needs a float accepts 5.
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return _plain_struct(value.struct_value)
        case "list_value":
            return [_plain_json(item) for item in value.list_value.values]
        case _:
            return None


# A StudySpec is immutable and a watcher gets it with each event, so each is converted once. Do not change the result.
@lru_cache(maxsize=512)
def spec_message(spec: StudySpec) -> tuning_pb2.StudySpec:
    """Return a study's spec as a message."""
    message = tuning_pb2.StudySpec()
    set_record(message, _SPEC, spec.to_json())
    message.final_check.off = spec.final_check is None
    return message


def _set_edits(message: tuning_pb2.Study, spec: StudySpec) -> None:
    space = spec.whole_space
    set_values(message.fixed, space.fixed)
    set_values(message.removed, space.left)
    set_values(message.imputed, space.added)
    for record in spec.edits:
        shown = message.space_edits.add(version=record.version, actor=record.actor)
        shown.added.extend(record.added)
        set_values(shown.removed, record.removed)
        set_values(shown.fixed, record.fixed)
        shown.freed.extend(record.freed)
        shown.trials.CopyFrom(earlier_trials(record.trials))
        set_time(shown.made_at, datetime.fromisoformat(record.at))


def earlier_trials(trials: EarlierTrials) -> tuning_pb2.EarlierTrials:
    """Return how the trials of a study count after an edit of its space, as a message."""
    message = tuning_pb2.EarlierTrials(
        total=trials.total,
        used=trials.used,
        imputed=trials.imputed,
        unfinished=trials.unfinished,
        left_out=trials.left_out,
        text=trials.text,
    )
    set_values(message.values, trials.values)
    return message


def parameter_message(data: Mapping[str, Any]) -> tuning_pb2.Parameter:
    """Return a parameter as a message, from its JSON form."""
    message = tuning_pb2.Parameter(name=data["name"], unit=data.get("unit") or "", optional=data.get("optional", False))
    kind = data["type"]
    if kind in ("float", "int"):
        limits: Any = message.float if kind == "float" else message.integer
        limits.min, limits.max, limits.log = data["min"], data["max"], data.get("log", False)
        for name in ("step", "factor"):
            if data.get(name) is not None:
                setattr(limits, name, data[name])
    elif kind in ("ordinal", "categorical"):
        values = message.ordinal if kind == "ordinal" else message.categorical
        values.SetInParent()
        for value in data["values"]:
            set_value(values.values.add(), value)
    else:
        message.boolean.SetInParent()
    if data.get("default") is not None:
        set_value(message.default, data["default"])
    condition = data.get("condition")
    if condition is not None:
        message.condition.parent = condition["parent"]
        for value in condition["values"]:
            set_value(message.condition.values.add(), value)
    return message


# --- rows


def study_message(study: Study) -> tuning_pb2.Study:
    """Return a study as a message."""
    message = tuning_pb2.Study(
        name=study.name,
        uid=str(study.uid),
        spec=spec_message(spec_of(study)),
        state=STUDY_STATES[study.state],
        state_reason=study.state_reason,
        revision=study.revision,
        trial_count=study.trial_count,
        finished_count=study.finished_count,
        space_exhausted=study.exhausted,
        space_version=study.space_version,
    )
    if study.budget is not None:
        message.spec.ClearField("budget")
        set_record(message.spec.budget, own_keys(Budget), budget_of(study).to_json())
    _set_edits(message, spec_of(study))
    set_time(message.created_at, study.created_at)
    set_time(message.updated_at, study.updated_at)
    choice = spec_of(study).choice
    if choice is not None:
        message.algorithm_choice.name, message.algorithm_choice.reason = choice.name, choice.reason
    if study.final_check is not None:
        message.search_end_reason = study.final_check["reason"]
    for one in spec_of(study).started_from:
        message.started_from.add(study=one.study, taken=one.taken, passed_over=one.passed_over)
    return message


def trial_message(study: Study, trial: Trial) -> tuning_pb2.Trial:
    """Return a trial as a message, without its measurements and log."""
    message = tuning_pb2.Trial(
        study=study.name,
        study_uid=str(study.uid),
        number=trial.number,
        state=TRIAL_STATES[trial.state],
        metrics=trial.metrics or {},
        reason=trial.reason,
        client_id=trial.client_id,
        agent=trial.agent,
        node=trial.node,
        doubt=trial.doubt,
        machine=trial.machine,
        attempt=trial.attempt,
        revision=trial.revision,
        origin=trial.origin,
        breaks=trial.breaks or (),
        repeat="" if trial.repeat is None else trial.repeat["text"],
    )
    set_values(message.params, trial.params)
    set_time(message.created_at, trial.created_at)
    if trial.started_at is not None:
        set_time(message.started_at, trial.started_at)
    if trial.finished_at is not None:
        set_time(message.finished_at, trial.finished_at)
    if trial.seconds is not None:
        message.elapsed.CopyFrom(duration(trial.seconds))
    if trial.interference is not None:
        message.interference.CopyFrom(tuning_pb2.Interference(**trial.interference))
    if trial.round is not None:
        message.round = trial.round
    return message


def reported_message(reported: Reported) -> tuning_pb2.Trial:
    """Return a trial after a report. A running trial has the metrics of its last measurement."""
    message = trial_message(reported.study, reported.trial)
    message.metrics.update(reported.last or {})
    return message


def trial_detail_message(detail: TrialDetail) -> tuning_pb2.Trial:
    """Return a trial with its measurements and log."""
    message = trial_message(detail.study, detail.trial)
    message.measurements.extend(measurement_message(measurement) for measurement in detail.measurements)
    if detail.measurements and detail.trial.state == "ACTIVE":
        message.metrics.update(max(detail.measurements, key=lambda one: one.step).metrics)
    message.log = detail.log
    return message


def note_message(study: str, written: Written) -> tuning_pb2.Note:
    """Return a note as a message."""
    note = written.note
    message = tuning_pb2.Note(
        study=study, trial=written.trial or 0, text=note.text, tags=note.tags, changed_by=note.changed_by
    )
    set_values(message.attributes, note.attributes)
    if note.changed_by:  # a note that was never written has no time either
        message.changed_at.FromDatetime(note.changed_at)
    return message


def measurement_message(measurement: Measurement) -> tuning_pb2.Measurement:
    """Return a measurement as a message."""
    message = tuning_pb2.Measurement(step=measurement.step, metrics=measurement.metrics)
    if measurement.elapsed_seconds is not None:
        message.elapsed.CopyFrom(duration(measurement.elapsed_seconds))
    return message


def operation_message(detail: OperationDetail) -> tuning_pb2.Operation:
    """Return an operation with the trials that it has produced so far."""
    operation = detail.operation
    return tuning_pb2.Operation(
        id=str(operation.id),
        study=detail.study.name,
        state=OPERATION_STATES[operation.state],
        trials=[trial_message(detail.study, trial) for trial in detail.trials],
        space_exhausted=operation.exhausted,
        error_code=operation.error_code,
        error_message=operation.error_message,
    )


def event_message(changes: Changes) -> tuning_pb2.StudyEvent:
    """Return the changes of a study as a message. A watcher continues from the revision in it, the last trial's."""
    message = tuning_pb2.StudyEvent(
        study=study_message(changes.study),
        trials=[trial_message(changes.study, trial) for trial in changes.trials],
    )
    message.study.revision = changes.revision
    return message


def lease_message(grant: Grant) -> agent_pb2.Lease:
    """Return a granted lease as a message."""
    message = agent_pb2.Lease(
        id=grant.lease,
        study=grant.study,
        trial=grant.trial,
        attempt=grant.attempt,
        component=grant.component,
        digest=grant.digest,
        application=grant.application,
        metrics=grant.metrics,
        tenant=grant.tenant,
        exclusive=grant.placement.exclusive,
        spread=grant.placement.spread,
        measured_on=grant.measured_on,
        same_node=grant.same_node,
        traceparent=grant.traceparent,
    )
    set_values(message.params, grant.params)
    if grant.trial_timeout_seconds is not None:
        message.trial_timeout.CopyFrom(duration(grant.trial_timeout_seconds))
    if grant.live is not None:
        message.live.CopyFrom(live_converters.plan_message(grant.live))
    return message


def invocation_json(message: agent_pb2.Invocation) -> dict[str, JsonValue]:
    """Return the JSON in which the commands of a trial are stored. NUL is replaced: PostgreSQL cannot store it."""
    return {
        "commands": [
            {
                "step": plain(one.step),
                "argv": [plain(item) for item in one.argv],
                "environment": {plain(name): plain(one.environment[name]) for name in sorted(one.environment)},
            }
            for one in message.commands
        ],
        "folder": plain(message.folder),
        "host": plain(message.host),
        "script": plain(message.script),
        "scheduler_options": [plain(option) for option in message.scheduler_options],
    }


def agent_message(agent: Agent) -> tuning_pb2.Agent:
    """Return an agent as a message."""
    message = tuning_pb2.Agent(
        id=agent.agent_id,
        name=agent.name,
        version=agent.version,
        state=tuning_pb2.AGENT_STATE_ONLINE if agent.online else tuning_pb2.AGENT_STATE_OFFLINE,
        slots=agent.slots,
        running=agent.busy,
        labels=agent.labels,
        components=[
            tuning_pb2.Component(
                name=component["name"],
                digest=component["digest"],
                applications=component["applications"],
                description=component["description"],
                space=[parameter_message(parameter) for parameter in component["space"]],
                metrics=component["metrics"],
            )
            for component in agent.components
        ],
    )
    set_time(message.registered_at, agent.registered_at)
    set_time(message.last_seen_at, agent.last_seen_at)
    return message
