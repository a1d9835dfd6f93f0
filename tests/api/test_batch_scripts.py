from __future__ import annotations

from service.tenancy.models import AuditEntry
from tests.api.conftest import Api
from trimtab_components.batch_places import LONGEST


def test_the_values_of_a_batch_script(api: Api) -> None:
    text = "#!/bin/bash\n#SBATCH -c 4\nTILE=64\n./solver --tile $TILE\n"
    before = AuditEntry.objects.count()
    found = api.ok("POST", "/batch-scripts", {"text": text, "variables": ["TILE"]})
    assert [(one["name"], one["kind"], one["value"], one["line"], one["fixed"]) for one in found["places"]] == [
        ("cpus_per_task", "option", "4", 2, False),
        ("tile", "env", "64", 3, True),
    ]
    assert found["text"] == text.replace("TILE=64", "TILE=${TILE:-64}")
    assert api.ok("POST", "/batch-scripts", {"text": ""}) == {"places": [], "text": ""}
    assert AuditEntry.objects.count() == before
    api.refused(400, "invalid_argument", "POST", "/batch-scripts", {"text": "x" * (LONGEST + 1)})


def test_a_hostile_script_is_read_in_time(api: Api) -> None:
    for part in ("$((", "A=", "'", "${A:-", "<<E\n", "#SBATCH -", '"\\', "a=1;", "env ", "export "):
        for most in (LONGEST // 4, 1900):
            text = f"{part * (most // len(part))}\n"
            api.ok("POST", "/batch-scripts", {"text": text * (LONGEST // 4 // len(text))})
