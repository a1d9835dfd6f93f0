"""Let the service check a study file, without creating the study: python check_study_file.py FILE."""

import sys
from pathlib import Path

import trimtab

with trimtab.Client() as client:
    client.parse_study_file(Path(sys.argv[1]).read_text())
