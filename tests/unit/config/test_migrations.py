"""The migrations against the models."""

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState


def test_migrations_make_the_tables_of_the_models() -> None:
    """Otherwise `makemigrations` would write another one."""
    loader = MigrationLoader(None)
    changes = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps)).changes(loader.graph)
    assert {label: [str(step) for one in found for step in one.operations] for label, found in changes.items()} == {}
