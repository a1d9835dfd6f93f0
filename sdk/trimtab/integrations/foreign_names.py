"""Names of other libraries as names that the service allows."""

import hashlib
import re

# The service's limits for names.
_PARAMETER = re.compile(r"\w[\w.:/+-]{0,126}")
_METRIC = re.compile(r"[^\W\d][\w.:/-]{0,126}")
_STUDY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def parameter_name(name: str) -> str:
    """Return the name of a parameter in the study: the same where the service allows it."""
    return name if _PARAMETER.fullmatch(name) else _replaced(name, r"[^\w.:/+-]", "p")


def metric_name(name: str) -> str:
    """Return the name of a metric in the study: the same where the service allows it."""
    return name if _METRIC.fullmatch(name) else _replaced(name, r"[^\w.:/-]", "m")


def study_name(name: str) -> str:
    """Return the name of a study on the service: the same where the service allows it."""
    return name if _STUDY.fullmatch(name) else _replaced(name, r"[^A-Za-z0-9._-]", "s")


def _replaced(name: str, forbidden: str, start: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{start}-{re.sub(forbidden, '_', name)[:50]}-{digest}"
