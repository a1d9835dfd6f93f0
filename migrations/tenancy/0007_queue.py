"""The operator's view of the queue: waiting operations by tenant, and the workers.

Workers belong to no tenant. Only the owner may use their table; the service's role calls functions that write and read
it.
"""

from django.db import migrations

TABLE = """
CREATE TABLE across.worker (
    name text PRIMARY KEY,
    seen_at timestamptz NOT NULL
)
"""

# name: (arguments, columns of the result, volatility, query)
FUNCTIONS = {
    # Record that a worker is alive, and delete the workers that were silent for `silence`.
    "note_worker": (
        "wanted text, silence interval",
        "noted text",
        "VOLATILE",
        """
        DELETE FROM across.worker WHERE seen_at < statement_timestamp() - silence AND name <> wanted;
        INSERT INTO across.worker (name, seen_at) VALUES (wanted, statement_timestamp())
            ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at RETURNING name
        """,
    ),
    "workers": (
        "silence interval",
        "name text, seen_at timestamptz, busy boolean",
        "STABLE",
        """
        SELECT worker.name, worker.seen_at, EXISTS (SELECT FROM studies_operation AS operation
            WHERE operation.state = 'RUNNING' AND operation.worker = worker.name)
        FROM across.worker AS worker WHERE worker.seen_at >= statement_timestamp() - silence ORDER BY worker.name
        """,
    ),
    # For each tenant with waiting or running work: the numbers of operations that wait and that are being computed, the
    # seconds for which the oldest has waited, and the number of trials that wait for an agent.
    "queue_depth": (
        "",
        "tenant_id bigint, waiting bigint, computing bigint, oldest double precision, trials bigint",
        "STABLE",
        """
        SELECT tenant_id, sum(waiting)::bigint, sum(computing)::bigint, max(oldest), sum(trials)::bigint FROM (
            SELECT tenant_id, count(*) FILTER (WHERE state = 'PENDING') AS waiting,
                count(*) FILTER (WHERE state <> 'PENDING') AS computing,
                extract(epoch FROM statement_timestamp() - min(created_at) FILTER (WHERE state = 'PENDING'))::double
                    precision AS oldest, 0 AS trials
            FROM studies_operation WHERE state IN ('PENDING', 'RUNNING', 'STALE') GROUP BY tenant_id
            UNION ALL SELECT tenant_id, 0, 0, NULL, sum(requested_count) FROM studies_study
            WHERE state = 'ACTIVE' AND parallelism IS NOT NULL AND requested_count > 0 GROUP BY tenant_id
        ) AS found GROUP BY tenant_id ORDER BY tenant_id
        """,
    ),
}


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0006_turns_of_many"), ("studies", "0006_lists")]

    operations = [
        migrations.RunSQL(TABLE, "DROP TABLE across.worker"),
        *(
            migrations.RunSQL(
                f"CREATE FUNCTION across.{name}({arguments}) RETURNS TABLE ({gives}) LANGUAGE sql {how}"
                f" SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {query} $$",
                f"DROP FUNCTION across.{name}",
            )
            for name, (arguments, gives, how, query) in FUNCTIONS.items()
        ),
    ]
