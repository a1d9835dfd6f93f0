"""The schema `across`: the questions about all tenants that the service may ask.

The service's role sees the rows of one tenant at a time. What has to look at all of them (sweeps, workers, signing in,
metrics) calls one of these functions, which run with the rights of the tables' owner and tell which rows there are, or
how many, and nothing of what is in them.
"""

from django.db import migrations

# name: (arguments, what it gives, query)
FUNCTIONS = {
    # A task carries an operation's id alone.
    "pending_operation": (
        "operation uuid",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, study_id FROM studies_operation WHERE id = operation AND state = 'PENDING'
        """,
    ),
    # Those whose worker has been silent for so long.
    "silent_operations": (
        "silence interval",
        "tenant_id bigint, operation_id uuid",
        """
        SELECT tenant_id, id FROM studies_operation WHERE state = 'RUNNING' AND heartbeat_at <
            statement_timestamp() - silence
        """,
    ),
    "lost_operations": (
        "silence interval",
        "tenant_id bigint, study_id bigint, operation_id uuid",
        """
        SELECT tenant_id, study_id, id FROM studies_operation WHERE state = 'STALE' AND heartbeat_at
            < statement_timestamp() - silence
        """,
    ),
    # Studies with operations that no worker took since they were enqueued; the wait doubles each time.
    "forgotten_operations": (
        "first_wait interval, longest_wait interval",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, study_id FROM studies_operation WHERE state = 'PENDING' AND enqueued_at <
            statement_timestamp() - least(greatest(first_wait, enqueued_at - created_at),
            longest_wait) GROUP BY tenant_id, study_id ORDER BY min(created_at)
        """,
    ),
    "late_studies": (
        "",
        "tenant_id bigint, study_id bigint",
        """
        SELECT tenant_id, id FROM studies_study WHERE deadline < statement_timestamp() AND state IN
            ('ACTIVE', 'PAUSED')
        """,
    ),
    # On agents, with too few open trials and no operation under way.
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
    "overdue_leases": (
        "",
        "tenant_id bigint, study_id bigint, lease_id uuid",
        """
        SELECT tenant_id, study_id, id FROM fleet_lease WHERE state = 'HELD' AND expires_at <
            statement_timestamp() ORDER BY expires_at
        """,
    ),
    # Whose an API token, an agent's credential, an enrolment or a login code is, by its hash.
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
    # On agents, with trials that wait while none runs; those that changed last come first.
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
                # Names resolve to the owner's tables, whatever the caller's path is.
                f" SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {query} $$",
                migrations.RunSQL.noop,
            )
            for name, (arguments, gives, query) in FUNCTIONS.items()
        ),
    ]
