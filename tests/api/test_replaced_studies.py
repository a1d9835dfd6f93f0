"""A request that means a deleted study does not reach the study that has its name by now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.conftest import Api, Json

Create = Callable[..., str]
HEADER = "X-Trimtab-Study-Uid"

# Requests that the service takes, below /studies/s.
REQUESTS: list[tuple[str, str, Json | None]] = [
    ("GET", "", None),
    ("PATCH", "", {"state": "ABORTED"}),
    ("DELETE", "", None),
    ("GET", "/file", None),
    ("GET", "/best", None),
    ("GET", "/analysis", None),
    ("GET", "/insight", None),
    ("PUT", "/budget", {"max_trials": 9}),
    ("POST", "/check", {}),
    ("POST", "/suggestions", {"count": 1}),
    ("POST", "/renewals", {"client_id": "c", "trials": [1], "lease_seconds": 60}),
    ("GET", "/queue", None),
    ("POST", "/queue", {"params": {"x": 0.5, "n": 4}, "count": 1}),
    ("GET", "/trials", None),
    ("POST", "/trials", {"params": {"x": 0.5, "n": 4}, "metrics": {"seconds": 1.0}}),
    ("GET", "/trials.csv", None),
    ("GET", "/trials.json", None),
    ("GET", "/verdict.csv", None),
    ("GET", "/failures", None),
    ("POST", "/results", {"results": [{"trial": 1, "metrics": {"seconds": 1.0}}]}),
    ("GET", "/trials/1", None),
    ("POST", "/trials/1/complete", {"metrics": {"seconds": 1.0}}),
    ("POST", "/trials/1/fail", {"infeasible": True, "reason": "broken"}),
    ("POST", "/trials/1/stop", {}),
    ("POST", "/trials/1/measurements", {"step": 1, "metrics": {"seconds": 1.0}}),
    ("GET", "/notes", None),
    ("PATCH", "/note", {"text": "mine"}),
    ("PATCH", "/trials/1/note", {"text": "mine"}),
    ("PATCH", "/space", {"ranges": {"n": {"max": 8}}}),
    ("POST", "/space/edits", {"edit": {"fix": {"n": 3}}}),
]


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_a_request_about_the_deleted_study_is_refused(
    api: Api, study: Create, method: str, path: str, body: Json | None
) -> None:
    study()
    first = api.ok("GET", "/studies/s")["uid"]
    api.ok("DELETE", "/studies/s")
    study()
    api.ok("POST", "/studies/s/suggestions", {"count": 1, "client_id": "c"})
    second = api.ok("GET", "/studies/s")
    assert second["uid"] != first
    api.client.defaults[f"HTTP_{HEADER.upper().replace('-', '_')}"] = first
    if method == "DELETE":  # the study that is meant is deleted already
        api.ok(method, "/studies/s")
    else:
        api.refused(404, "study_replaced", method, f"/studies/s{path}", body)
    api.client.defaults[f"HTTP_{HEADER.upper().replace('-', '_')}"] = second["uid"]
    assert api.ok("GET", "/studies/s") == second
