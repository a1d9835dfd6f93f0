"""Request bodies: JSON, of a bounded size."""

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import JSONParser

from service.core.errors import ResourceExhausted


class LimitedJSONParser(JSONParser):
    """JSON that is no larger than DATA_UPLOAD_MAX_MEMORY_SIZE: REST framework reads past Django's own check of it."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The body's value. Raises ResourceExhausted for one that is too large, ParseError for one that is no JSON."""
        allowed = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(allowed + 1)
        if len(body) > allowed:
            raise ResourceExhausted(
                "message_too_large", f"The request's body has more than the {allowed} bytes allowed.", allowed=allowed
            )
        return super().parse(BytesIO(body), media_type, parser_context)
