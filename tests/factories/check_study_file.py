"""Let the service check a study file, without creating the study: python check_study_file.py FILE.

Studies from which the file starts are created, as earlier studies of the same problem.
"""

import sys
from pathlib import Path

import yaml

import trimtab
from trimtab.cli.submission import create, load

with trimtab.Client() as client:
    file = Path(sys.argv[1])
    content = yaml.safe_load(file.read_text())
    for name in content.pop("start_from", ()):
        earlier = file.with_name(f"{name}.yaml")
        earlier.write_text(yaml.safe_dump(content))
        create(client, load(client, earlier, name), name=name, load_if_exists=True)
    client.parse_study_file(file.read_text())
