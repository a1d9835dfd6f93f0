"""All paths of this package."""

from django.urls import include, path, re_path

from service.api.health import healthz, readyz
from service.api.login import login
from service.api.metrics import metrics
from service.api.views import NoSuchPath

urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("login", login),
    path("api/v1/", include("service.api.v1.urls")),
    re_path(r"^api(/|$)", NoSuchPath.as_view()),
]
