"""The documentation site at /docs. WhiteNoise serves its files; the view answers for addresses without a file."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from whitenoise.middleware import WhiteNoiseMiddleware

PREFIX = "docs/"
NOT_BUILT = "The documentation is not built. Run `make docs` and start the service again.\n"
NO_SUCH_PAGE = f"The documentation has no such page. Start at /{PREFIX}.\n"


class Files(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """The files of the console below / and those of the documentation site below /docs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Read the names of all files once."""
        super().__init__(*args, **kwargs)
        if settings.DOCS_DIR.is_dir():
            self.add_files(str(settings.DOCS_DIR), prefix=PREFIX)


@require_safe
def missing(request: HttpRequest) -> HttpResponse:
    """Return 404 with the reason: the site is not built, or it has no such page."""
    built = (settings.DOCS_DIR / "index.html").exists()
    text = NO_SUCH_PAGE if built else NOT_BUILT
    return HttpResponse(text, status=404, content_type="text/plain; charset=utf-8")
