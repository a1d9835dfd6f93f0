"""A plugin of coverage.py that also measures the supervisors of trials.

The agent starts a supervisor with `python -I -S`. The option -S leaves out the site packages, which have coverage.py.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from coverage.plugin_support import Plugins


def coverage_init(registry: Plugins, options: Mapping[str, Any]) -> None:
    """Start such processes without -S from now on. They have nothing in the site packages that they use by mistake."""
    start = subprocess.Popen.__init__

    @functools.wraps(start)
    def measured(self: subprocess.Popen[Any], args: Any, *rest: Any, **named: Any) -> None:
        start(self, without_option(args), *rest, **named)

    subprocess.Popen.__init__ = measured  # type: ignore[method-assign]


def without_option(command: Any) -> Any:
    """Return a command line without the option -S after -I."""
    if isinstance(command, Sequence) and not isinstance(command, str | bytes) and list(command[1:3]) == ["-I", "-S"]:
        return [*command[:2], *command[3:]]
    return command
