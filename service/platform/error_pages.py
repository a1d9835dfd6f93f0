"""The pages of the documentation that explain errors.

This table is the only one. An error whose code is here names the page in REST, in gRPC and in the SDK. A test checks
that the site has each page. `reference/errors.html` lists all codes.
"""

from collections.abc import Mapping

SITE = "/docs/"

PAGES: Mapping[str, str] = {
    "agent_in_use": "reference/agent.html",
    "agent_online_elsewhere": "reference/agent.html",
    "check_under_way": "explanation/final-check.html#a-check-or-more-budget-later",
    "component_changed": "explanation/components.html",
    "component_not_found": "how-to/write-component.html",
    "constraint_broken": "how-to/constraints.html",
    "constraint_too_large": "reference/limits.html#search-spaces",
    "database_full": "how-to/backup.html",
    "declaration_differs": "reference/space-edits.html",
    "default_outside": "reference/space-edits.html",
    "grid_shifted": "reference/space-edits.html",
    "invalid_component": "reference/component-files.html",
    "invalid_enrolment": "how-to/many-machines.html",
    "message_too_large": "reference/limits.html",
    "no_feasible_configuration": "how-to/constraints.html",
    "no_feasible_configuration_found": "how-to/constraints.html",
    "not_permitted": "explanation/tenancy.html",
    "owner_absent": "reference/limits.html#rows-of-a-tenant",
    "parameter_unchangeable": "reference/space-edits.html",
    "quota_exceeded": "reference/limits.html#rows-of-a-tenant",
    "rate_limited": "reference/limits.html#rows-of-a-tenant",
    "request_too_slow": "reference/limits.html",
    "search_not_over": "explanation/final-check.html#a-check-or-more-budget-later",
    "space_too_large": "reference/limits.html#search-spaces",
    "tenant_required": "explanation/tenancy.html",
    "too_many_agents": "reference/limits.html#rows-of-a-tenant",
    "too_many_calls": "reference/limits.html",
    "too_many_components": "reference/limits.html#rows-of-a-tenant",
    "too_many_edits": "reference/space-edits.html",
    "too_many_enrolments": "reference/limits.html#rows-of-a-tenant",
    "too_many_settings": "reference/limits.html#matching",
    "too_many_streams": "reference/limits.html#requests-of-http",
    "too_many_tokens": "reference/limits.html#rows-of-a-tenant",
    "unknown_application": "how-to/write-component.html",
    "unknown_metric": "how-to/write-component.html",
    "unreadable_file": "reference/study-files.html",
    "value_differs": "reference/space-edits.html",
}


def page(code: str) -> str:
    """Return the address of the page about a code, below the address of the console; empty without one."""
    found = PAGES.get(code)
    return "" if found is None else SITE + found
