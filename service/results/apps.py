"""Django application of the package `service.results`."""

from django.apps import AppConfig


class ResultsConfig(AppConfig):
    """The owner of the table `pipeline_studyinsight`, whose model keeps the label `pipeline`."""

    name = "service.results"
    label = "results"
