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
from trimtab_agent.runners.batch import Meaning, Queue
from trimtab_agent.runners.ray_states import meaning_of

logger = logging.getLogger(__name__)

DEFAULT_ADDRESS = "http://127.0.0.1:8265"
# seconds that a call may take
CALL_TIME = 30.0
# every job of ours is called so, and by its lease
PREFIX = "trimtab-"
ADDRESS_ALLOWED = "http://HOST:8265 or https://HOST, the address of the dashboard of Ray's head"

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


def choose_address(given: str | None) -> str:
    """The dashboard's address: what is given, else RAY_API_SERVER_ADDRESS, else RAY_ADDRESS, else this machine's.

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
    scheme = found[1] if found else None
    if found and scheme in ("http", "https"):
        return address.rstrip("/")
    # Ray's own programs take `auto`, too: they ask the node that they run on
    hint = f"--ray-address=http://{found[2]}:8265" if found and found[2] not in ("auto", "local") else ""
    if scheme == "ray":
        raise ConfigError(
            f"{source} {address!r} is an address of Ray Client, whose work ends with its client, while trials outlive "
            f"the agent: give the dashboard's address, such as {hint}"
        )
    told = f"; try {hint}" if hint and not scheme else ""
    raise ConfigError(f"{source} {address!r} is not {ADDRESS_ALLOWED}{told}")


class Dashboard:
    """The calls. Each raises RayError where it fails, and does nothing else than what it says."""

    def __init__(self, address: str) -> None:
        self.address = address

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

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        call = functools.partial(_call, method, self.address + path, body)
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
        raise RayError(f"{what}: {error.code} {told}", passing=passing) from None
    except (OSError, ValueError) as error:
        raise RayError(f"{what}: {getattr(error, 'reason', None) or error}", passing=True) from None


def _headers() -> dict[str, str]:
    """As Ray's own command line sends them: the token of a cluster that wants one is where Ray looks for it."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get("RAY_AUTH_MODE") == "token":
        token = os.environ.get("RAY_AUTH_TOKEN", "")
        path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
        if not token:
            try:
                token = path.read_text(encoding="utf-8")
            except OSError as error:
                raise RayError(f"RAY_AUTH_MODE is 'token', but there is none: {error}", passing=True) from None
        headers["Authorization"] = f"Bearer {token.strip()}"
    return headers
