"""Django application `pipeline`."""

from django.apps import AppConfig


class PipelineConfig(AppConfig):
    name = "service.pipeline"
    label = "pipeline"
