"""A gRPC server of a test's own: answers each call with the next item of a script."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import grpc
from google.rpc import status_pb2

from trimtab._gen import errordetails_pb2, tuning_pb2, tuning_pb2_grpc

METHODS = [method.name for method in tuning_pb2.DESCRIPTOR.services_by_name["TuningService"].methods]


class FarSide:
    """Answers from `script`, whatever is called; keeps (method, request) in `calls`, and who called in `tokens`.

    An item is an answer, a list of answers (a stream), a Refusal, or a function that gets the request and makes one.
    """

    def __init__(self) -> None:
        self.script: Iterator[Any] = iter(())
        self.calls: list[tuple[str, Any]] = []
        self.tokens: set[str] = set()
        self.address = ""

    def answers(self, *script: Any) -> None:
        self.script = iter(script)

    def answers_from(self, script: Iterable[Any]) -> None:
        self.script = iter(script)

    def answer(self, method: str, request: Any, context: Any) -> Any:
        self.calls.append((method, request))
        self.tokens.update(value for key, value in context.invocation_metadata() if key == "authorization")
        item = next(self.script)
        if callable(item):
            item = item(request)
        if isinstance(item, Refusal):
            item.abort(context)
        return item

    def stream(self, method: str, request: Any, context: Any) -> Iterator[Any]:
        for item in self.answer(method, request, context):
            if isinstance(item, Refusal):
                item.abort(context)
            yield item


class Refusal:
    """An error, with details unless `code` is empty; `after`: the seconds that it asks to wait for."""

    def __init__(
        self, status: grpc.StatusCode, text: str = "no", code: str = "", retryable: bool = False, after: float = 0.0
    ) -> None:
        self.status, self.text, self.code, self.retryable, self.after = status, text, code, retryable, after

    def abort(self, context: Any) -> None:
        if self.code:
            detail = errordetails_pb2.ErrorDetail(code=self.code, message=self.text, retryable=self.retryable)
            detail.data["field"] = "space[0].min"
            if self.after:
                detail.data["retry_after_seconds"] = self.after
            status = status_pb2.Status(code=self.status.value[0], message=self.text)
            status.details.add().Pack(detail)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(self.status, self.text)


def _handler(name: str, streams: bool) -> Any:
    def call(self: FarSide, request: Any, context: Any) -> Any:
        return (self.stream if streams else self.answer)(name, request, context)

    return call


for _name in METHODS:
    setattr(FarSide, _name, _handler(_name, _name == "WatchStudy"))


@contextmanager
def serve(far_side: FarSide, port: int = 0) -> Iterator[FarSide]:
    """Serve on a free port, or again on `port`."""
    server = grpc.server(ThreadPoolExecutor(8), options=(("grpc.so_reuseport", 0),))
    tuning_pb2_grpc.add_TuningServiceServicer_to_server(cast(Any, far_side), server)
    far_side.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    try:
        yield far_side
    finally:
        server.stop(0.1).wait()
