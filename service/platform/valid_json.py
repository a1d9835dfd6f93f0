"""JSON as its standard defines it, which has no number for infinity and NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from service.logger import Logger

logger = Logger(__name__)


def dumps(content: object, **options: Any) -> str:
    """Return valid JSON text. A number that is not finite is a defect, which is logged, and becomes null."""
    try:
        return json.dumps(content, allow_nan=False, **options)
    except ValueError:
        text = json.dumps(finite(content), allow_nan=False, **options)
        logger.exception("a number that is not finite is sent as null")
        return text


def finite(content: Any) -> Any:
    """Return JSON content with null in place of each number that is not finite."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return content
