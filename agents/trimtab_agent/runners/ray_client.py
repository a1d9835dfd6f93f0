"""The REST interface of Ray's dashboard, and the query of all jobs."""

import asyncio
import functools
import json
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
from trimtab_agent.logger import Logger
from trimtab_agent.runners.batch import Meaning, Queue, Silence
from trimtab_agent.runners.ray_states import meaning_of

logger = Logger(__name__)

DASHBOARD_PORT = 8265
DEFAULT_ADDRESS = f"http://127.0.0.1:{DASHBOARD_PORT}"
# Time limit of a call in seconds.
CALL_TIME = 30.0
# The name of every job of an agent starts with this; its lease follows.
PREFIX = "trimtab-"
ADDRESS_ALLOWED = (
    "http://HOST:8265 or https://HOST, the address of the dashboard of Ray's head; or ray://HOST:10001 or HOST:6379 if"
    f" its dashboard has port {DASHBOARD_PORT}"
)
TOKEN_HINT = ": put the cluster's token into RAY_AUTH_TOKEN, the file RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token"

# These calls have their own threads, because they block while the head is away.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="ray")


class RayError(Exception):
    """A call of the dashboard failed with the message `str(error)`. `passing`: the same call may succeed later."""

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
        """The meaning of its state."""
        return meaning_of(self.state, self.error, self.message, self.exit_code)

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.meaning.outcome is not None


Jobs = Mapping[str, Job]
"""The jobs by their submission names."""

Resources = Mapping[str, float]
"""Resources of a node or a job: CPU, GPU, memory in bytes, and the cluster's own resources."""


@dataclass(frozen=True)
class Node:
    """A node that is alive. `host` is the name of its machine."""

    id: str
    host: str
    resources: Resources


def choose_address(given: str | None) -> str:
    """Return the dashboard's address: `given`, else RAY_API_SERVER_ADDRESS, else RAY_ADDRESS, else this machine's.

    The head's other addresses, that of Ray Client (`ray://HOST:10001`) and that of its cluster (`HOST:6379`, as in
    RAY_ADDRESS within a cluster), stand for the dashboard at its usual port. Work of Ray Client would end with the
    client, while trials outlive the agent.

    Raises:
        ConfigError: the address has another form.
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
        logger.info(
            "the address is one of the head, using its dashboard", source=source, address=address, dashboard=head
        )
        return head
    # Ray's own programs also accept `auto`, which means the node that they run on.
    is_host = found and not scheme and host not in ("auto", "local")
    reported = f"; try --ray-address=http://{host}:{DASHBOARD_PORT}" if is_host else ""
    raise ConfigError(f"{source} {address!r} is not {ADDRESS_ALLOWED}{reported}")


class Dashboard:
    """The calls of the dashboard. Each raises RayError if it fails."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.silence = Silence()

    def queue(self) -> Queue[Jobs]:
        """Return the queue of the jobs that are trials."""
        return Queue("Ray", self.jobs, RayError)

    async def jobs(self) -> Jobs:
        """Return every job that is a trial, of any agent."""
        found: dict[str, Job] = {}
        for item in await self._call("GET", "/api/jobs/"):
            name = item.get("submission_id") or ""
            if name.startswith(PREFIX):
                error, message = str(item.get("error_type") or ""), str(item.get("message") or "")
                found[name] = Job(name, str(item["status"]), error, message, item.get("driver_exit_code"))
        return found

    async def submit(self, name: str, entrypoint: str, asked: Mapping[str, Any]) -> None:
        """Submit a job. A job that already exists, because an answer was lost, is not changed."""
        try:
            await self._call("POST", "/api/jobs/", {"submission_id": name, "entrypoint": entrypoint, **asked})
        except RayError as error:
            if f"{name} already exists" not in str(error):
                raise

    async def stop(self, name: str) -> None:
        """Ask a job to stop. A job that has ended or does not exist is ignored."""
        try:
            await self._call("POST", f"/api/jobs/{urllib.parse.quote(name)}/stop")
        except RayError as error:
            if error.passing:
                raise

    async def nodes(self) -> Sequence[Resources]:
        """Return the total resources of each node that is alive."""
        answer = await self._call("GET", "/api/v0/nodes?detail=1&limit=10000")
        nodes = answer["data"]["result"]["result"]
        return [node["resources_total"] for node in nodes if node["state"] == "ALIVE"]

    async def machines(self) -> Sequence[Node]:
        """Return the nodes that are alive, with their host names, which the state API does not return."""
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
        # The last line of a traceback is the error.
        reported = text.splitlines()[-1] if text else error.reason
        passing = error.code >= 500 or error.code in (401, 403, 408, 429)
        hint = TOKEN_HINT if error.code in (401, 403) else ""
        raise RayError(f"{what}: {error.code} {reported}{hint}", passing=passing) from None
    except (OSError, ValueError) as error:
        raise RayError(f"{what}: {getattr(error, 'reason', None) or error}", passing=True) from None


def _headers() -> dict[str, str]:
    """Return the headers, with the token if there is one, from where Ray looks for it.

    Ray creates a token when `ray.init()` first starts a cluster, and later clusters require it even if nobody has set
    RAY_AUTH_MODE.
    """
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
                raise RayError(f"RAY_AUTH_MODE is 'token', but there is no token: {error}", passing=True) from None
            return headers
    headers["Authorization"] = f"Bearer {token.strip()}"
    return headers
