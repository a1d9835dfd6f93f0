"""Django application `pipeline`."""

from django.apps import AppConfig


class PipelineConfig(AppConfig):
    """Names the application and its label."""

    name = "service.pipeline"
    label = "pipeline"
