"""The page of the console. WhiteNoise serves its files; every other path is a route inside the page."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

NOT_BUILT = "The console is not built. Install Node.js, run `make setup` and start the service again.\n"


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Return the single page, which reads the path itself, or 404 for a missing file."""
    index = settings.CONSOLE_DIR / "index.html"
    if not index.exists():
        return HttpResponse(NOT_BUILT, status=404, content_type="text/plain; charset=utf-8")
    if "." in request.path.rpartition("/")[2]:
        return HttpResponse("No such file.\n", status=404, content_type="text/plain; charset=utf-8")
    # The page names the files of one build, so a browser must not keep it.
    return HttpResponse(index.read_bytes(), headers={"Cache-Control": "no-cache"})
