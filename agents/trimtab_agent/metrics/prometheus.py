"""Read a metric from a Prometheus server by a PromQL query over the time of a run."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import IO, Any

from trimtab_agent.metrics.extract import number

# Stands for the duration of the run in a query, as in `rate(requests_total[$run])`.
RUN = "$run"
# Maximum number of bytes of an answer. The answer with one value has a few hundred.
ANSWER_LIMIT = 1 << 20
# Seconds between two attempts while the server does not answer.
INTERVAL = 1.0
# How many series, and how many characters of a text of the server or of a query, an error shows.
MOST_SERIES = 5
MOST_TEXT = 300


class QueryError(Exception):
    """The query gave no number, and the configuration is not the cause. `str(error)` says what to check."""


def by_query(metric: Mapping[str, Any], server: Mapping[str, str], began: float, ended: float) -> float:
    """Return the value of the metric's query for the run from `began` to `ended`, in seconds since 1970.

    The query is evaluated at the end of the run. The function waits for the metric's `delay`, and then at most for its
    `timeout`, while the server does not answer. `server` has the agent's `url` and `token_file`, which may be empty.
    The token is sent only to that address.

    Raises:
        NoValueError: the value is NaN or infinite.
        QueryError: the server does not answer or refuses the query, or the answer is not one value.
    """
    time.sleep(metric["delay"])
    query = metric["query"].replace(RUN, f"{max(1, round((ended - began) * 1000))}ms")
    url = metric["url"] or server["url"]
    request = urllib.request.Request(
        url.rstrip("/") + "/api/v1/query",
        urllib.parse.urlencode({"query": query, "time": f"{ended:.3f}", "timeout": f"{metric['timeout']:g}s"}).encode(),
        {}
        if metric["url"] or not server["token_file"]
        else {"Authorization": f"Bearer {_token(server['token_file'])}"},
    )
    answer = _answer(request, url, metric["timeout"])
    try:
        kind, found = answer["data"]["resultType"], answer["data"]["result"]
        if kind == "scalar":
            return number(found[1], metric)
        if kind != "vector":
            raise QueryError(f"the query gives a {kind}, not one number: {_short(query)}")
        if not found:
            raise QueryError(
                f"Prometheus has no data for the query in the {ended - began:.3g} s of the run. The run must be several"
                f" scrape intervals long, and the clocks must agree: {_short(query)}"
            )
        if len(found) > 1:
            shown = "; ".join(_labels(one["metric"]) for one in found[:MOST_SERIES])
            more = "; ..." if len(found) > MOST_SERIES else ""
            raise QueryError(
                f"the query gives {len(found)} series ({shown}{more}), and a metric is one number. Add sum(...),"
                f" max(...) or labels: {_short(query)}"
            )
        return number(found[0]["value"][1], metric)
    except (LookupError, TypeError):
        raise QueryError(f"{url} is not a Prometheus server: its answer has another form") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for one address."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        raise QueryError(f"{req.full_url} redirects to {_short(newurl)}. Give that address")


def _answer(request: urllib.request.Request, url: str, timeout: float) -> Any:
    end = time.monotonic() + timeout
    opener = urllib.request.build_opener(_NoRedirect)
    while True:
        refused = ""
        try:
            with opener.open(request, timeout=max(0.1, end - time.monotonic())) as response:
                data = response.read(ANSWER_LIMIT + 1)
            break
        except urllib.error.HTTPError as error:
            with error:
                said = _message(error.read(ANSWER_LIMIT))
            if error.code < 500:
                raise QueryError(f"Prometheus refuses the query ({error.code}): {said or error.reason}") from None
            refused = f"{error.code} {said or error.reason}"
        except OSError as error:
            refused = str(getattr(error, "reason", None) or error)
        if time.monotonic() + INTERVAL >= end:
            raise QueryError(f"Prometheus at {url} has not answered within {timeout:g} s: {_short(refused)}") from None
        time.sleep(INTERVAL)
    if len(data) > ANSWER_LIMIT:
        raise QueryError(f"the answer has more than {ANSWER_LIMIT >> 20} MiB. The query must give one number")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise QueryError(f"{url} is not a Prometheus server: its answer is not JSON") from None


def _token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"--prometheus-token-file {path} cannot be read: {error}") from None


def _message(data: bytes) -> str:
    try:
        return _short(str(json.loads(data)["error"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _labels(labels: Mapping[str, Any]) -> str:
    return _short("{" + ", ".join(f"{key}={value}" for key, value in labels.items()) + "}")


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."
