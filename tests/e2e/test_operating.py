"""`trimtab-service tenants` against a running service."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService


def tenants(service: EmbeddedService, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "service.main", "tenants", *words, "--data-dir", str(service.data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_tenant_from_its_creation_to_its_deletion(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    slug = f"t-{uuid.uuid4().hex[:8]}"
    created = json.loads(tenants(embedded_service, "create", slug, "--name", "Some Ltd"))
    assert (created["slug"], created["name"], created["disabled"]) == (slug, "Some Ltd", False)
    limited = json.loads(tenants(embedded_service, "limit", slug, "--set", "studies=7"))
    assert limited["limits"]["studies"] == {"limit": 7, "own": True, "used": 0}
    assert "is in use: disable it first" in tenants(embedded_service, "delete", slug, "--yes", code=1)

    output = tmp_path / "out.jsonl"
    tenants(embedded_service, "export", slug, "--output", str(output))
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert rows[0]["tenant"] == slug
    # Its creation, its limit and this export.
    assert rows[-1]["rows"]["tenancy.auditentry"] == 3

    tenants(embedded_service, "disable", slug)
    deleted = dict(line.split("\t") for line in tenants(embedded_service, "delete", slug, "--yes").splitlines())
    assert deleted["tenancy_auditentry"] == "4"
    listed = tenants(embedded_service, "list")
    assert "default" in listed.split()
    assert slug not in listed
