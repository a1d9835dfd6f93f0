"""The parser of JSON bodies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser as RestFrameworkParser

DEEPEST = 64


class JSONParser(RestFrameworkParser):
    """REST framework's parser, which also refuses values that could be neither stored nor sent back."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the content of the body. Raises ParseError also for deep nesting and for half of a character."""
        try:
            data = super().parse(stream, media_type, parser_context)
            levels = _levels(data)
            # A lone surrogate is valid JSON, but no text in UTF-8.
            json.dumps(data, ensure_ascii=False).encode()
        except RecursionError:
            levels = DEEPEST + 1
        except UnicodeEncodeError:
            raise ParseError("It contains half of a surrogate pair, such as \\ud800.") from None
        if levels > DEEPEST:
            raise ParseError(f"It is nested deeper than {DEEPEST} levels.")
        return data


def _levels(data: object) -> int:
    """Return the depth of nested lists and objects, up to one more than is allowed."""
    level, depth = [data], 0
    while depth <= DEEPEST and (level := [part for item in level for part in _parts(item)]):
        depth += 1
    return depth


def _parts(item: object) -> Iterable[object]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
