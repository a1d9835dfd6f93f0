"""The renderer of JSON answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import JSONRenderer as RestFrameworkRenderer

from service.logger import Logger
from service.platform.valid_json import finite

logger = Logger(__name__)


class JSONRenderer(RestFrameworkRenderer):
    """REST framework's renderer. A number that is not finite is a defect, which is logged, and becomes null."""

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the answer as valid JSON."""
        try:
            return super().render(data, accepted_media_type, renderer_context)
        except ValueError:
            answer = super().render(finite(data), accepted_media_type, renderer_context)
            logger.exception("a number that is not finite is sent as null")
            return answer
