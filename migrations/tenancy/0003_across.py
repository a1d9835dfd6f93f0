"""The schema `across`: the questions about all tenants that the service may ask.

The service's role sees the rows of one tenant at a time. Code that needs rows of all tenants (sweeps, workers, sign-in,
metrics) calls one of these functions. They run with the rights of the tables' owner. They return the ids or the number
of rows, and never their content.
"""

from django.db import migrations

# name: (arguments, columns of the result, query)
FUNCTIONS = {
    # The tenant and study of an operation, because a task carries only the operation's id.
    "pending_operation": (
        "operation uuid",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, study_id FROM studies_operation WHERE id = operation AND state = 'PENDING'
        """,
    ),
    # Operations whose worker has sent no heartbeat for `silence`.
    "silent_operations": (
        "silence interval",
        "tenant_id bigint, operation_id uuid",
        """
        SELECT tenant_id, id FROM studies_operation WHERE state = 'RUNNING' AND heartbeat_at <
            statement_timestamp() - silence
        """,
    ),
    # Operations that were found silent, and whose worker has stayed silent since.
    "lost_operations": (
        "silence interval",
        "tenant_id bigint, study_id bigint, operation_id uuid",
        """
        SELECT tenant_id, study_id, id FROM studies_operation WHERE state = 'STALE' AND heartbeat_at
            < statement_timestamp() - silence
        """,
    ),
    # Studies with an operation that no worker has taken since it was enqueued. The wait doubles each time.
    "forgotten_operations": (
        "first_wait interval, longest_wait interval",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, study_id FROM studies_operation WHERE state = 'PENDING' AND enqueued_at <
            statement_timestamp() - least(greatest(first_wait, enqueued_at - created_at),
            longest_wait) GROUP BY tenant_id, study_id ORDER BY min(created_at)
        """,
    ),
    # Studies whose time budget is over.
    "late_studies": (
        "",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, id FROM studies_study WHERE deadline < statement_timestamp() AND state IN
            ('ACTIVE', 'PAUSED')
        """,
    ),
    # Studies on agents that have too few open trials and no unfinished operation.
    "hungry_studies": (
        "",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, id FROM studies_study AS study WHERE state = 'ACTIVE' AND NOT exhausted
            AND component <> '' AND parallelism >= requested_count + active_count AND NOT EXISTS
            (SELECT FROM studies_operation AS operation WHERE operation.study_id = study.id AND
            operation.state IN ('PENDING', 'RUNNING', 'STALE'))
        """,
    ),
    # Leases that were not renewed in time.
    "overdue_leases": (
        "",
        "tenant_id bigint, study_id bigint, lease_id uuid",
        """
        SELECT tenant_id, study_id, id FROM fleet_lease WHERE state = 'HELD' AND expires_at <
            statement_timestamp() ORDER BY expires_at
        """,
    ),
    # The tenant of an API token, an agent's credential, an enrolment or a login code, by its hash.
    "tenant_of_secret": (
        "wanted text",
        "tenant_id bigint",
        """
        SELECT tenant_id FROM identity_apitoken WHERE digest = wanted
        UNION ALL SELECT tenant_id FROM identity_agentcredential WHERE digest = wanted
        UNION ALL SELECT tenant_id FROM identity_enrolment WHERE digest = wanted
        UNION ALL SELECT tenant_id FROM identity_logincode WHERE digest = wanted
        """,
    ),
    # Studies on agents with trials that wait while no trial runs. The study that changed last comes first.
    "waiting_studies": (
        "most integer",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, id FROM studies_study WHERE state = 'ACTIVE' AND parallelism IS NOT NULL
            AND requested_count > 0 AND active_count = 0 ORDER BY updated_at DESC LIMIT most
        """,
    ),
    "count_studies": (
        "",
        "state text, studies bigint, requested bigint, active bigint, finished bigint",
        """
        SELECT state, count(*), sum(requested_count), sum(active_count), sum(finished_count) FROM
            studies_study GROUP BY state
        """,
    ),
    "count_operations": (
        "",
        "state text, operations bigint",
        """
        SELECT state, count(*) FROM studies_operation WHERE state IN ('PENDING', 'RUNNING', 'STALE')
            GROUP BY state
        """,
    ),
    "count_agents": (
        "silence interval",
        "online bigint, offline bigint",
        """
        SELECT count(*) FILTER (WHERE last_seen_at > statement_timestamp() - silence), count(*)
            FILTER (WHERE last_seen_at <= statement_timestamp() - silence) FROM fleet_agent
        """,
    ),
}


class Migration(migrations.Migration):
    dependencies = [
        ("tenancy", "0002_default_tenant"),
        ("studies", "0003_trial_node"),
        ("fleet", "0001_initial"),
        ("identity", "0002_api_tokens"),
    ]

    operations = [
        migrations.RunSQL(
            "CREATE SCHEMA across; REVOKE ALL ON SCHEMA across FROM PUBLIC", "DROP SCHEMA across CASCADE"
        ),
        *(
            migrations.RunSQL(
                f"CREATE FUNCTION across.{name}({arguments}) RETURNS TABLE ({gives}) LANGUAGE sql STABLE"
                # The fixed path makes names resolve to the owner's tables, whatever the caller's path is.
                f" SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {query} $$",
                migrations.RunSQL.noop,
            )
            for name, (arguments, gives, query) in FUNCTIONS.items()
        ),
    ]
