"""Completion of names in the shell: `trimtab --install-completion` installs it."""

import trimtab
from trimtab.errors import TrimtabError

# A person who has pressed Tab does not wait longer than this for a service that does not answer.
PATIENCE_SECONDS = 1.0


def study_names(incomplete: str) -> list[str]:
    """Return the names of studies that begin with a text, newest first; none if the service does not answer."""
    try:
        with trimtab.Client(retry_seconds=PATIENCE_SECONDS) as client:
            return [study.name for study in client.list_studies(name_prefix=incomplete)]
    except TrimtabError:
        return []
