"""Django application of the package `service.trials`."""

from django.apps import AppConfig


class TrialsConfig(AppConfig):
    """Owns the table `pipeline_designerstate`. Its label is the folder's former name: no table is renamed."""

    name = "service.trials"
    label = "pipeline"
