from __future__ import annotations

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema


def test_the_schema_is_valid_and_lists_every_path() -> None:
    schema = Client().get("/api/v1/schema").json()
    validate_schema(schema)  # type: ignore[no-untyped-call]
    assert schema["openapi"].startswith("3.")
    paths = schema["paths"]
    assert {
        f"/api/v1{path}"
        for path in (
            "/sign-in", "/session", "/tokens", "/tokens/{token_id}", "/members", "/enrolments", "/revocations",
            "/studies", "/studies/{name}", "/studies/{name}/file", "/studies/{name}/best", "/studies/{name}/settings",
            "/studies/{name}/analysis",
            "/studies/{name}/events", "/studies/{name}/suggestions", "/studies/{name}/renewals",
            "/studies/{name}/results",
            "/studies/{name}/queue", "/studies/{name}/trials",
            "/studies/{name}/trials/{number}", "/studies/{name}/trials/{number}/complete",
            "/studies/{name}/trials/{number}/fail", "/studies/{name}/trials/{number}/stop",
            "/studies/{name}/insight", "/studies/{name}/budget", "/studies/{name}/space", "/studies/{name}/check",
                "/studies/{name}/space/edits",
            "/studies/{name}/table", "/studies/{name}/sample", "/studies/{name}/curves",
            "/studies/{name}/failures", "/studies/{name}/trials.csv", "/studies/{name}/trials.json",
            "/studies/{name}/verdict.csv",
            "/studies/{name}/trials/{number}/events", "/studies/{name}/trials/{number}/measurements",
            "/studies/{name}/trials/{number}/artifacts/{artifact_id}",
            "/operations/{operation_id}", "/agents",
            "/agents/{agent_id}", "/agents/{agent_id}/credentials", "/agents/{agent_id}/components",
            "/audit", "/audit/export", "/quota",
            "/tenant/export", "/tenants", "/tenants/{slug}",
            "/study-facets", "/study-name-checks", "/sample-data",
            "/comparison", "/methods", "/plans", "/dry-runs", "/components", "/components/{name}", "/gallery",
            "/matching/records", "/matching/records/{record_id}", "/matching/match", "/matching/jobs",
            "/matching/settings", "/matching/quality", "/matching/approval",
            "/components/{name}/files", "/components/{name}/files/{number}", "/component-checks",
            "/batch-scripts", "/events", "/queue",
            "/live", "/studies/{name}/live", "/studies/{name}/live/stop", "/studies/{name}/trials/{number}/live",
            "/studies/{name}/trials/{number}/approve", "/studies/{name}/trials/{number}/decline",
            "/studies/{name}/trials/{number}/params",
            "/studies/{name}/notes", "/studies/{name}/note", "/studies/{name}/trials/{number}/note",
            "/notices", "/notices/read", "/notice-channels", "/notice-channels/{channel_id}",
            "/notice-channels/{channel_id}/test", "/notice-channels/{channel_id}/deliveries",
        )
    } == set(paths)  # fmt: skip
    for path in paths.values():
        for operation in path.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
    assert "text/event-stream" in paths["/api/v1/studies/{name}/events"]["get"]["responses"]["200"]["content"]


def test_the_schema_is_made_once_and_served_in_both_media_types(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Client().get("/api/v1/schema")

    def again(*_: object, **__: object) -> object:
        raise AssertionError("the schema is made again")

    monkeypatch.setattr(SchemaGenerator, "get_schema", again)
    for accepted in ("application/vnd.oai.openapi+json", "application/json"):
        answer = Client().get("/api/v1/schema?lang=de&version=2", headers={"Accept": accepted})
        assert (answer.status_code, answer.content) == (200, first.content)
        assert answer.headers["Content-Type"].startswith(accepted)
    assert Client().get("/api/v1/schema", headers={"Accept": "text/html"}).status_code == 406
