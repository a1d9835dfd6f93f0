"""Services and messages of the gRPC interface with their comments, from proto/."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2 as pb
from grpc_tools import protoc

from docs._ext.generated.markdown import code, table
from docs._ext.pages import ROOT

# Field numbers of FileDescriptorProto, ServiceDescriptorProto, DescriptorProto and EnumDescriptorProto, which make the
# paths of comments.
SERVICE, MESSAGE, ENUM = 6, 4, 5
METHOD, FIELD, NESTED, NESTED_ENUM, VALUE = 2, 2, 3, 4, 2
KINDS = {
    kind.number: kind.name.removeprefix("TYPE_").lower() for kind in pb.FieldDescriptorProto.Type.DESCRIPTOR.values
}

Comments = Mapping[tuple[int, ...], str]


def sections() -> str:
    """Return a section for each file of the protocol: its services, then its messages."""
    parts = []
    for file in _files():
        comments = {tuple(one.path): one.leading_comments.strip() for one in file.source_code_info.location}
        parts.append(f"## {file.package}\n")
        for index, service in enumerate(file.service):
            rows = [
                (
                    code(method.name),
                    _type(method.input_type),
                    _answer(method),
                    comments.get((SERVICE, index, METHOD, n), ""),
                )
                for n, method in enumerate(service.method)
            ]
            parts.append(f"### {service.name}\n\n{table(('method', 'request', 'answer', 'what it does'), rows)}")
        for index, message in enumerate(file.message_type):
            parts += _message(message, (MESSAGE, index), comments, "")
        for index, enum in enumerate(file.enum_type):
            parts.append(_enum(enum, (ENUM, index), comments, ""))
    return "\n".join(parts)


def _files() -> Sequence[pb.FileDescriptorProto]:
    names = [path.relative_to(ROOT / "proto").as_posix() for path in sorted((ROOT / "proto").rglob("*.proto"))]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        include = Path(protoc.__file__).parent / "_proto"
        options = ["--include_source_info", f"--descriptor_set_out={target}"]
        if protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{include}", *options, *names]) != 0:
            raise RuntimeError("protoc cannot read proto/; its message is above")
        return pb.FileDescriptorSet.FromString(target.read_bytes()).file


def _message(message: pb.DescriptorProto, path: tuple[int, ...], comments: Comments, outer: str) -> list[str]:
    if message.options.map_entry:
        return []
    name = f"{outer}{message.name}"
    rows = [
        (code(field.name), _field_type(field, message), comments.get((*path, FIELD, n), ""))
        for n, field in enumerate(message.field)
    ]
    text = " ".join(comments.get(path, "").split())
    parts = [f"### {name}\n\n{text}\n\n{table(('field', 'type', 'meaning'), rows) if rows else 'It has no field.'}\n"]
    for n, nested in enumerate(message.nested_type):
        parts += _message(nested, (*path, NESTED, n), comments, f"{name}.")
    parts += [_enum(enum, (*path, NESTED_ENUM, n), comments, f"{name}.") for n, enum in enumerate(message.enum_type)]
    return parts


def _enum(enum: pb.EnumDescriptorProto, path: tuple[int, ...], comments: Comments, outer: str) -> str:
    rows = [(code(value.name), comments.get((*path, VALUE, n), "")) for n, value in enumerate(enum.value)]
    text = " ".join(comments.get(path, "").split())
    return f"### {outer}{enum.name}\n\n{text}\n\n{table(('value', 'meaning'), rows)}"


def _answer(method: pb.MethodDescriptorProto) -> str:
    return ("stream of " if method.server_streaming else "") + _type(method.output_type)


def _type(name: str) -> str:
    return code(name.removeprefix(".google.protobuf.").rpartition(".")[2])


def _field_type(field: pb.FieldDescriptorProto, message: pb.DescriptorProto) -> str:
    kind = _type(field.type_name) if field.type_name else code(KINDS[field.type])
    if field.label != pb.FieldDescriptorProto.LABEL_REPEATED:
        return kind
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith(f".{nested.name}"):
            key, value = nested.field
            return f"map of {code(KINDS[key.type])} to {_field_type(value, nested)}"
    return f"list of {kind}"
