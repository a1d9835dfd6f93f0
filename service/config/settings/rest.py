"""Settings of Django REST framework and of the OpenAPI schema."""

from typing import Any

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["service.api.authentication.Authentication"],
    # Views call tenancy/permissions.py themselves: api/views.py.
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_PARSER_CLASSES": ["service.api.parsing.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["service.api.rendering.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "service.api.schema.Schema",
    "EXCEPTION_HANDLER": "service.api.errors.answer",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Trimtab",
    "VERSION": "1",
    "DESCRIPTION": "Studies, trials, operations and agents of the Trimtab tuning service.",
    "LICENSE": {"name": "Apache-2.0"},
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "StudyState": "service.core.lifecycle.StudyState",
        "TrialState": "service.core.lifecycle.TrialState",
        "OperationState": "service.core.lifecycle.OperationState",
        "RecordState": "service.matching.models.record.State",
    },
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "PREPROCESSING_HOOKS": ["service.api.schema.add_events"],
}
