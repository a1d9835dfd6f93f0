"""The rules for every answer, whatever the request was. A problem is a text that says what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import jsonschema

from tests.factories.grpc_service import refusal_of

# A fault of the service's own, or a request to which it found no answer.
FORBIDDEN = (
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
PROBLEM = "application/problem+json"
_CODE = re.compile(r"[a-z][a-z0-9_]*")
# Of a longer answer the shape is not checked, which would take longer than everything else.
_LONGEST_CHECKED = 200_000


@dataclass(frozen=True)
class Answer:
    """How a request ended. `problem` is empty if the answer is as it should be. `data` is the answer's JSON."""

    succeeded: bool
    status: str
    problem: str = ""
    data: Any = None


class Answers:
    """The rules for answers: the OpenAPI schema, the stable codes, and words that no answer may have."""

    def __init__(self, schema: Mapping[str, Any], codes: Collection[str], secrets: Sequence[str]) -> None:
        self._components = _without_nullable(schema["components"])
        self._codes = codes
        self._secrets = secrets
        self._known: dict[str, Any] = {}

    def of_rest(self, answer: httpx.Response, documented: Mapping[str, Any], sent: str) -> Answer:
        """Check an answer of REST. `documented` has the answers that the schema documents for the operation."""
        status, kind = answer.status_code, answer.headers.get("content-type", "").partition(";")[0]
        found = Answer(answer.is_success, str(status))
        shown = answer.text[:300]
        if status >= 500:
            return _with(found, f"status {status}: {shown}")
        if "html" in kind or shown.lstrip().startswith("<"):
            return _with(found, f"an HTML page with status {status}: {shown}")
        if leaked := self._leaked(answer.text, sent):
            return _with(found, f"another tenant's {leaked!r} in the answer")
        try:
            data = None if not answer.content or "json" not in kind or "ndjson" in kind else _strict(answer.text)
        except ValueError as error:
            return _with(found, f"status {status} without valid JSON: {error}: {shown}")
        if not answer.is_success:
            return Answer(False, _code(data) or str(status), self._of_refusal(status, kind, data, shown))
        if str(status) not in documented:
            return _with(found, f"status {status} is not documented")
        content = documented[str(status)].get("content", {})
        if kind not in content and (content or answer.content):
            return _with(found, f"the content type {kind!r} is not documented")
        fault = self._misshapen(content.get(kind, {}).get("schema"), data, len(answer.content))
        return Answer(True, str(status), fault, data)

    def of_grpc(self, message: Any, sent: str) -> Answer:
        """Check an answer of gRPC."""
        leaked = self._leaked(message.SerializeToString().decode(errors="replace"), sent)
        return Answer(True, "OK", f"another tenant's {leaked!r} in the answer" if leaked else "", message)

    def of_error(self, error: grpc.RpcError, sent: str) -> Answer:
        """Check a refusal of gRPC."""
        try:
            refused = refusal_of(error)
        except AssertionError:
            # gRPC itself refuses some requests, with a status alone.
            return Answer(False, error.code().name, f"no details: {error.code().name} {str(error.details())[:300]}")
        problem = ""
        if refused.status in FORBIDDEN:
            problem = f"{refused.status.name}: {refused.message[:300]}"
        elif leaked := self._leaked(f"{refused.message} {refused.data}", sent):
            problem = f"another tenant's {leaked!r} in the refusal"
        elif not refused.message or not self._is_stable(refused.code):
            problem = f"the code {refused.code!r} is not one of the documentation: {refused.message[:300]}"
        return Answer(False, refused.code, problem)

    def _of_refusal(self, status: int, kind: str, data: Any, shown: str) -> str:
        if kind != PROBLEM or not isinstance(data, dict):
            return f"status {status} with {kind!r} in place of a problem document: {shown}"
        missing = {"type", "title", "status", "detail", "code", "retryable", "data"} - data.keys()
        if missing or data["status"] != status:
            return f"status {status} with a problem document without {sorted(missing)}: {shown}"
        return "" if self._is_stable(data["code"]) else f"the code {data['code']!r} is not one of the documentation"

    def _is_stable(self, code: object) -> bool:
        return isinstance(code, str) and bool(_CODE.fullmatch(code)) and (not self._codes or code in self._codes)

    def _leaked(self, text: str, sent: str) -> str:
        return next((word for word in self._secrets if word in text and word not in sent), "")

    def _misshapen(self, schema: Any, data: Any, size: int) -> str:
        if schema is None or data is None or size > _LONGEST_CHECKED:
            return ""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._known:
            whole = {**_without_nullable(schema), "components": self._components}
            self._known[key] = jsonschema.Draft4Validator(whole)
        error = next(iter(self._known[key].iter_errors(data)), None)
        return (
            "" if error is None else f"the answer differs from its schema at {error.json_path}: {error.message[:300]}"
        )


def _with(answer: Answer, problem: str) -> Answer:
    return Answer(answer.succeeded, answer.status, problem)


def _code(data: Any) -> str:
    return str(data.get("code", "")) if isinstance(data, dict) else ""


def _strict(text: str) -> Any:
    """Return the content of JSON. Raises ValueError for NaN and infinity, which JSON does not have."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def _without_nullable(node: Any) -> Any:
    """Return a schema of OpenAPI 3.0 as JSON schema, in which null is a type."""
    if isinstance(node, list):
        return [_without_nullable(one) for one in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _without_nullable(one) for key, one in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain
