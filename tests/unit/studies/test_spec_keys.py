"""A key of the spec is declared once, and everything that knows the spec's keys follows from the declaration."""

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from docs._ext.generated import study_keys
from service._gen import tuning_pb2
from service.api.v1.serializers.problems import serializer_of
from service.core.errors import InvalidInput
from service.planning import study_file
from service.rpc import converters
from service.studies.spec_keys import Kind, key, record_of
from service.studies.specs import StudySpec, parse
from service.tenancy.principal import Principal
from tests.factories.study_files import BASE

SPEC: dict[str, Any] = {
    "space": {"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}]},
    "objectives": [{"metric": "seconds", "goal": "minimize"}],
}


def _colour(field: str, value: object) -> object:
    if value not in ("red", "green"):
        raise InvalidInput(field, value, "red or green")
    return value


@dataclass(frozen=True, eq=False)
class Coloured(StudySpec):
    """A spec with one more key."""

    colour: str = key(Kind("text", _colour), "Colour of the study.", note="Empty: none.", default="", file_form="red")


RECORD = record_of(Coloured)


def test_it_is_read_checked_and_written() -> None:
    spec = parse({**SPEC, "colour": "red"}, Coloured)
    assert isinstance(spec, Coloured)
    assert spec.colour == spec.to_json()["colour"] == spec.stored()["colour"] == "red"
    assert parse(spec.to_json(), Coloured).to_json() == spec.to_json()
    assert "colour" not in parse(SPEC, Coloured).to_json()
    with pytest.raises(InvalidInput, match=r"colour: 'blue' is not allowed\. Use red or green\."):
        parse({**SPEC, "colour": "blue"}, Coloured)
    with pytest.raises(InvalidInput, match=r"colour: 'red' is not allowed\. Use the keys algorithm, budget"):
        parse({**SPEC, "colour": "red"})


def test_it_is_in_the_rest_schema() -> None:
    found = serializer_of(RECORD)().fields
    assert found.keys() - serializer_of(record_of(StudySpec))().fields.keys() == {"colour"}
    assert (found["colour"].help_text, found["colour"].required) == ("Colour of the study. Empty: none.", False)


def test_it_is_in_study_files_and_their_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_file, "KEYS", study_file.keys_of(Coloured))
    found = study_file.read(Principal.system(1), BASE + "colour: red\n", offered_space=lambda *_: None)
    assert found.spec["colour"] == "red"
    assert "| `colour` | text |  | Colour of the study: red. |" in study_keys.table()


def test_it_is_in_messages_that_have_the_field() -> None:
    file = descriptor_pb2.FileDescriptorProto()
    tuning_pb2.DESCRIPTOR.CopyToProto(file)
    [message] = [one for one in file.message_type if one.name == "StudySpec"]
    message.field.add(name="colour", number=999, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    for known in (duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    made: Any = GetMessageClass(pool.FindMessageTypeByName(message_name()))()
    only = [one for one in RECORD.keys if one.name == "colour"]
    converters.set_record(made, only, parse({**SPEC, "colour": "red"}, Coloured).to_json())
    assert made.colour == "red"
    assert converters.record_json(made, only) == {"colour": "red"}


def message_name() -> str:
    name: str = tuning_pb2.StudySpec.DESCRIPTOR.full_name
    return name
