"""The page of the console. WhiteNoise serves its files; every other path is a route inside the page."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

# The folder of the console's files. The others are at the root, where no route has a dot.
ASSETS = "assets"
NOT_BUILT = "The console is not built. Install Node.js, run `make setup` and start the service again.\n"


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Return the single page, which reads the path itself, or 404 for a missing file."""
    index = settings.CONSOLE_DIR / "index.html"
    if not index.exists():
        return HttpResponse(NOT_BUILT, status=404, content_type="text/plain; charset=utf-8")
    # The name of a study may have a dot, so only the places of files tell a missing file from a route.
    first, _, rest = request.path.lstrip("/").partition("/")
    if first == ASSETS or (not rest and "." in first):
        return HttpResponse("No such file.\n", status=404, content_type="text/plain; charset=utf-8")
    # The page names the files of one build, so a browser must not keep it.
    return HttpResponse(index.read_bytes(), headers={"Cache-Control": "no-cache"})
