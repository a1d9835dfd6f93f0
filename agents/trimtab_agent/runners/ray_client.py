"""Ray's dashboard: its REST interface for jobs, each call once; and one look at all jobs of the agent."""

import asyncio
import functools
import json
import logging
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimtab_agent.errors import ConfigError
from trimtab_agent.runners.batch import Meaning, Queue, Silence
from trimtab_agent.runners.ray_states import meaning_of

logger = logging.getLogger(__name__)

DASHBOARD_PORT = 8265
DEFAULT_ADDRESS = f"http://127.0.0.1:{DASHBOARD_PORT}"
# seconds that a call may take
CALL_TIME = 30.0
# every job of ours is called so, and by its lease
PREFIX = "trimtab-"
ADDRESS_ALLOWED = (
    "http://HOST:8265 or https://HOST, the address of the dashboard of Ray's head; ray://HOST:10001 or HOST:6379 where"
    f" it has port {DASHBOARD_PORT}"
)
TOKEN_HINT = ": the cluster's token is wanted in RAY_AUTH_TOKEN, the file RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"

# of their own: with the head away they are held up, and nothing else may be
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="ray")


class RayError(Exception):
    """A call of the dashboard has failed; `str()` is what it said. `passing`: the same call later may succeed."""

    def __init__(self, message: str, *, passing: bool) -> None:
        self.passing = passing
        super().__init__(message)


@dataclass(frozen=True)
class Job:
    """A job as the dashboard lists it."""

    id: str
    state: str
    error: str
    message: str
    exit_code: int | None

    @property
    def meaning(self) -> Meaning:
        """What its state means."""
        return meaning_of(self.state, self.error, self.message, self.exit_code)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or will run."""
        return self.meaning.outcome is not None


Jobs = Mapping[str, Job]
"""By the submission's name."""

Resources = Mapping[str, float]
"""What a node has or a job asks for: CPU, GPU, memory in bytes, and whatever the cluster names."""


@dataclass(frozen=True)
class Node:
    """A node that is alive. `host`: what its machine is called."""

    id: str
    host: str
    resources: Resources


def choose_address(given: str | None) -> str:
    """The dashboard's address: what is given, else RAY_API_SERVER_ADDRESS, else RAY_ADDRESS, else this machine's.

    The head's other addresses, that of Ray Client (`ray://HOST:10001`) and that of its cluster (`HOST:6379`, as
    RAY_ADDRESS is within one), stand for its dashboard at the usual port: what is begun by Ray Client ends with it,
    while trials outlive the agent.

    Raises:
        ConfigError: it is no such address.
    """
    sources = {
        "--ray-address": given,
        "RAY_API_SERVER_ADDRESS": os.environ.get("RAY_API_SERVER_ADDRESS"),
        "RAY_ADDRESS": os.environ.get("RAY_ADDRESS"),
    }
    source, address = next(((name, text) for name, text in sources.items() if text), ("", DEFAULT_ADDRESS))
    found = re.fullmatch(r"(?:(\w+)://)?(\[[^\]/]+\]|[^:/\[\]]+)(?::(\d+))?(/.*)?", address)
    scheme, host, port, path = found.groups() if found else (None, "", None, None)
    if found and scheme in ("http", "https"):
        return address.rstrip("/")
    if found and not path and (scheme == "ray" or (scheme is None and port)):
        head = f"http://{host}:{DASHBOARD_PORT}"
        logger.info("%s %s is the head's address: its dashboard is asked at %s", source, address, head)
        return head
    # Ray's own programs take `auto`, too: they ask the node that they run on
    is_host = found and not scheme and host not in ("auto", "local")
    told = f"; try --ray-address=http://{host}:{DASHBOARD_PORT}" if is_host else ""
    raise ConfigError(f"{source} {address!r} is not {ADDRESS_ALLOWED}{told}")


class Dashboard:
    """The calls. Each raises RayError where it fails, and does nothing else than what it says."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.silence = Silence()

    def queue(self) -> Queue[Jobs]:
        """The jobs that are trials, by one call for all."""
        return Queue("Ray", self.jobs, RayError)

    async def jobs(self) -> Jobs:
        """Every job that is a trial, of whichever agent."""
        found: dict[str, Job] = {}
        for item in await self._call("GET", "/api/jobs/"):
            name = item.get("submission_id") or ""
            if name.startswith(PREFIX):
                error, message = str(item.get("error_type") or ""), str(item.get("message") or "")
                found[name] = Job(name, str(item["status"]), error, message, item.get("driver_exit_code"))
        return found

    async def submit(self, name: str, entrypoint: str, asked: Mapping[str, Any]) -> None:
        """Submits a job; one that is there already, since an answer was lost, is left alone."""
        try:
            await self._call("POST", "/api/jobs/", {"submission_id": name, "entrypoint": entrypoint, **asked})
        except RayError as error:
            if f"{name} already exists" not in str(error):
                raise

    async def stop(self, name: str) -> None:
        """Signals a job to end; one that is over or not there is left alone."""
        try:
            await self._call("POST", f"/api/jobs/{urllib.parse.quote(name)}/stop")
        except RayError as error:
            if error.passing:
                raise

    async def nodes(self) -> Sequence[Resources]:
        """What each node that is alive has in all."""
        answer = await self._call("GET", "/api/v0/nodes?detail=1&limit=10000")
        nodes = answer["data"]["result"]["result"]
        return [node["resources_total"] for node in nodes if node["state"] == "ALIVE"]

    async def machines(self) -> Sequence[Node]:
        """The nodes that are alive, with their machines' names, of which the state API does not tell."""
        answer = await self._call("GET", "/nodes?view=summary")
        nodes = [item["raylet"] for item in answer["data"]["summary"]]
        return [
            Node(node["nodeId"], node["nodeManagerHostname"], node["resourcesTotal"])
            for node in nodes
            if node.get("state") == "ALIVE"
        ]

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        call = functools.partial(_call, method, self.address + path, body)
        with self.silence.call(lambda error: isinstance(error, RayError) and not error.passing):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, call)


def _call(method: str, url: str, body: Mapping[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, _headers(), method=method)
    what = f"{method} {url}"
    try:
        with urllib.request.urlopen(request, timeout=CALL_TIME) as answer:  # http alone: choose_address  # nosec B310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace").strip()
        # the last line of a traceback says what it is about
        told = text.splitlines()[-1] if text else error.reason
        passing = error.code >= 500 or error.code in (401, 403, 408, 429)
        hint = TOKEN_HINT if error.code in (401, 403) else ""
        raise RayError(f"{what}: {error.code} {told}{hint}", passing=passing) from None
    except (OSError, ValueError) as error:
        raise RayError(f"{what}: {getattr(error, 'reason', None) or error}", passing=True) from None


def _headers() -> dict[str, str]:
    """With the token, for a cluster that wants one, from where Ray looks for it. Ray makes one when a cluster is first
    started by `ray.init()`, and clusters that are started later want it though nobody has set RAY_AUTH_MODE."""
    headers = {"Content-Type": "application/json"}
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    if mode not in ("", "token"):
        return headers
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
    if not token:
        try:
            token = path.read_text(encoding="utf-8")
        except OSError as error:
            if mode == "token":
                raise RayError(f"RAY_AUTH_MODE is 'token', but there is none: {error}", passing=True) from None
            return headers
    headers["Authorization"] = f"Bearer {token.strip()}"
    return headers
