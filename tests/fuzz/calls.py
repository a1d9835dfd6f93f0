"""Calls of both interfaces under one form: make a valid request, send a tree, check the answer."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

import grpc
import httpx
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from service.rpc.admission import MAX_LISTED_BYTES, most_bytes
from tests.fuzz import grpc_requests, rest_requests, values
from tests.fuzz.answers import Answer, Answers
from tests.fuzz.mutations import Kit
from tests.fuzz.world import World

# Nobody waits longer than this for the beginning of any answer.
LONGEST_SECONDS = 20.0
# A stream, or a call that asks to be held, is left after this time.
HELD_SECONDS = 0.4
# Servers refuse longer addresses before the service sees them.
LONGEST_ADDRESS = 8000
LONGEST_QUERY = 3000


class Call(Protocol):
    """An operation of REST or a method of gRPC."""

    @property
    def name(self) -> str:
        """Return the name in the table."""

    @property
    def role(self) -> str:
        """Return the role that calls."""

    @property
    def most(self) -> int:
        """Return the largest number of bytes of a request."""

    def make(self, world: World) -> Any:
        """Return the tree of a new valid request."""

    def send(self, world: World, tree: Any, random_: random.Random | None = None) -> Answer:
        """Send a request and check its answer. With `random_` its text may be spoilt, too."""

    def kit(self, foreign: list[str], most: int) -> Kit:
        """Return what mutations of its requests may use."""

    def shown(self, tree: Any) -> str:
        """Return the request as text."""


class RestCall:
    """An operation of REST."""

    def __init__(self, operation: rest_requests.Operation, answers: Answers) -> None:
        self.operation = operation
        self.name = f"{operation.method} {operation.path.removeprefix('/api/v1')}"
        self.role = operation.role
        self.most = MAX_LISTED_BYTES - 1000 if operation.has_body else LONGEST_QUERY
        self._answers = answers

    def make(self, world: World) -> Any:
        return rest_requests.request_for(world, self.operation)

    def kit(self, foreign: list[str], most: int) -> Kit:
        return Kit(min(most, self.most), foreign)

    def shown(self, tree: Any) -> str:
        return f"{self.operation.method} {_address(self.operation.path, tree)} {_json(tree.get('body'))}"

    def send(self, world: World, tree: Any, random_: random.Random | None = None) -> Answer:
        address = _address(self.operation.path, tree)
        if not isinstance(tree, dict) or not address or len(address) > LONGEST_ADDRESS:
            return Answer(False, "not sent")
        headers = {"Content-Type": "application/json", "X-Trimtab-Console": "1"}
        if self.role:
            headers["Authorization"] = f"Bearer {world.tokens[self.role]}"
        body = b"" if "body" not in tree else _spoilt(_json(tree["body"]), random_)
        try:
            if self.operation.is_stream:
                return self._begin(world, address, headers)
            answer = world.http.request(
                self.operation.method, address, content=body, headers=headers, timeout=LONGEST_SECONDS
            )
        except httpx.TimeoutException:
            return Answer(False, "late", f"no answer within {LONGEST_SECONDS:g} s")
        except httpx.HTTPError as error:
            return Answer(False, "broken", f"the connection broke: {error!r}")
        return self._answers.of_rest(answer, self.operation.responses, address + body.decode(errors="replace"))

    def _begin(self, world: World, address: str, headers: Mapping[str, str]) -> Answer:
        """Read the beginning of a stream."""
        with world.http.stream("GET", address, headers=headers, timeout=LONGEST_SECONDS) as answer:
            if not answer.is_success:
                answer.read()
                return self._answers.of_rest(answer, self.operation.responses, address)
            end = time.monotonic() + LONGEST_SECONDS
            for line in answer.iter_lines():
                if line.startswith("data:") or time.monotonic() > end:
                    break
            kind = answer.headers["content-type"].partition(";")[0]
            return Answer(True, "200", "" if kind == "text/event-stream" else f"the content type is {kind!r}")


class GrpcCall:
    """A method of gRPC."""

    def __init__(self, method: MethodDescriptor, answers: Answers, plain: grpc.Channel) -> None:
        self.method = method
        self.name = grpc_requests.name_of(method)
        self.role = grpc_requests.role_of(method)
        self.most = min(most_bytes(method.input_type), MAX_LISTED_BYTES) - 1000
        self._answers = answers
        make: Any = plain.unary_stream if method.server_streaming else plain.unary_unary
        self._call = make(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=lambda raw: raw,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )

    def make(self, world: World) -> Any:
        return grpc_requests.to_tree(grpc_requests.request_for(world, self.method))

    def kit(self, foreign: list[str], most: int) -> Kit:
        return Kit(min(most, self.most), foreign, grpc_requests.STRUCTURES)

    def shown(self, tree: Any) -> str:
        return f"{self.name} {grpc_requests.to_message(self.method.input_type, tree)}"

    def send(self, world: World, tree: Any, random_: random.Random | None = None) -> Answer:
        message = grpc_requests.to_message(self.method.input_type, tree)
        raw = message.SerializeToString()
        if random_ is not None and random_.random() < 0.02:
            raw = raw[: random_.randint(0, len(raw))] + random_.randbytes(random_.randint(0, 20))
        if len(raw) > self.most + 100_000:
            return Answer(False, "not sent")
        wait = getattr(message, "wait", None)
        held = self.method.server_streaming or (wait is not None and (wait.seconds > 0 or wait.nanos > 100_000_000))
        metadata = [("authorization", f"Bearer {world.tokens[self.role]}")] if self.role else []
        sent = raw.decode(errors="replace")
        try:
            answer = self._call(raw, timeout=HELD_SECONDS if held else LONGEST_SECONDS, metadata=metadata)
            if self.method.server_streaming:
                answer, stream = next(iter(answer)), answer
                stream.cancel()
        except grpc.RpcError as error:
            if held and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return Answer(True, "held")
            return self._answers.of_error(error, sent)
        except StopIteration:
            return Answer(True, "OK")
        return self._answers.of_grpc(answer, sent)


def _address(path: str, tree: Any) -> str:
    """Return the address of a request; an empty text if the tree has no such address."""
    if not isinstance(tree, dict):
        return ""
    parts = tree.get("path")
    for name in re.findall(r"{(\w+)}", path):
        if not isinstance(parts, dict) or name not in parts:
            return ""
        text = quote(_word(parts[name]), safe="")
        if text in ("", ".", ".."):
            # A client would change the path.
            return ""
        path = path.replace("{" + name + "}", text)
    query = tree.get("query") or {}
    pairs = [
        f"{quote(str(key), safe='')}={quote(_word(one), safe='')}"
        for key, content in (query.items() if isinstance(query, dict) else [])
        for one in (content if isinstance(content, list) else [content])
    ]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return "null"


def _spoilt(text: str, random_: random.Random | None) -> bytes:
    """Return the text of a body, which may be spoilt in a way that no JSON library would write."""
    if random_ is None or random_.random() > 0.05:
        return text.encode()
    match random_.randint(0, 4):
        case 0:
            return text[: random_.randint(0, len(text))].encode()
        case 1:
            at = random_.randint(0, len(text))
            return (
                text[:at].encode()
                + random_.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x00"))
                + text[at:].encode()
            )
        case 2:
            return b"\xef\xbb\xbf" + text.encode()
        case 3 if text.startswith("{"):
            # Every key twice.
            return f"{{{text[1:-1]},{text[1:-1]}}}".encode()
        case _:
            found = list(re.finditer(r'"(?:[^"\\]|\\.)*"(?=[,}\]])|-?\d+(?:\.\d+)?', text[:10_000]))
            if not found:
                return text.encode()
            one = random_.choice(found)
            return (text[: one.start()] + random_.choice(values.RAW) + text[one.end() :]).encode()
