"""The rich console of the command line and the progress bar, on which no text can control the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from trimtab.terminal import visible, without_passwords

# Columns of a file or a pipe: a name that is cut could not be used by the next program.
ENDLESS = 10_000


class TerminalConsole(Console):
    """A console that shows control characters as escapes; the one for errors also hides passwords of addresses."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        super().__init__(stderr=stderr, highlight=False, **options)
        # Rich has taken a width from the options or from COLUMNS. Otherwise it would take 80 for a file or a pipe.
        if self._width is None and not self.is_terminal:
            self.width = ENDLESS

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as rich measures and prints it. Cells of tables are measured after the replacement."""
        return super().render_str(self._shown(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of anything that is printed, also of a `Text`. The console's own codes are kept."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=self._shown(piece.text))

    def _shown(self, text: str) -> str:
        shown = visible(text)
        return without_passwords(shown) if self.stderr else shown
