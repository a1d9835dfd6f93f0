from __future__ import annotations

from django.test import Client
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
            "/studies", "/studies/{name}", "/studies/{name}/file", "/studies/{name}/best", "/studies/{name}/analysis",
            "/studies/{name}/events", "/studies/{name}/suggestions", "/studies/{name}/renewals",
            "/studies/{name}/results",
            "/studies/{name}/queue", "/studies/{name}/trials",
            "/studies/{name}/trials/{number}", "/studies/{name}/trials/{number}/complete",
            "/studies/{name}/trials/{number}/fail", "/studies/{name}/trials/{number}/stop",
            "/studies/{name}/insight", "/studies/{name}/budget", "/studies/{name}/space", "/studies/{name}/check",
                "/studies/{name}/space/edits",
            "/studies/{name}/table", "/studies/{name}/sample",
            "/studies/{name}/failures", "/studies/{name}/trials.csv", "/studies/{name}/trials.json",
            "/studies/{name}/verdict.csv",
            "/studies/{name}/trials/{number}/events", "/studies/{name}/trials/{number}/measurements",
            "/studies/{name}/trials/{number}/artifacts/{artifact_id}",
            "/operations/{operation_id}", "/agents",
            "/agents/{agent_id}", "/agents/{agent_id}/credentials", "/audit", "/audit/export", "/quota",
            "/tenant/export", "/tenants", "/tenants/{slug}",
            "/study-facets", "/study-name-checks",
            "/comparison", "/methods", "/plans", "/dry-runs", "/components", "/components/{name}",
            "/matching/records", "/matching/records/{record_id}", "/matching/match", "/matching/jobs",
            "/matching/settings", "/matching/quality",
            "/components/{name}/files", "/components/{name}/files/{number}", "/component-checks", "/events", "/queue",
            "/studies/{name}/notes", "/studies/{name}/note", "/studies/{name}/trials/{number}/note",
            "/notices", "/notices/read", "/notice-channels", "/notice-channels/{channel_id}",
            "/notice-channels/{channel_id}/test", "/notice-channels/{channel_id}/deliveries",
        )
    } == set(paths)  # fmt: skip
    for path in paths.values():
        for operation in path.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
    assert "text/event-stream" in paths["/api/v1/studies/{name}/events"]["get"]["responses"]["200"]["content"]
