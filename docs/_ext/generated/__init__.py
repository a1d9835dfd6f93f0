"""The parts of reference pages that the code itself describes. Each function returns Markdown."""

from collections.abc import Callable, Mapping

GENERATORS: Mapping[str, Callable[[], str]] = {}
