"""The URLs of the web process: the API first, then the documentation, then the console."""

from django.urls import include, re_path

from service.config import console, documentation

handler500 = "service.api.errors.server_error"
urlpatterns = [
    re_path(r"", include("service.api.urls")),
    re_path(r"^docs(?:/|$)", documentation.missing),
    re_path(r"^(?!api/).*$", console.page),
]
