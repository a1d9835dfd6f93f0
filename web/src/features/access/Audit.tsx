import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { auditQuery, type AuditFilter } from "./api";
import styles from "./access.module.css";

/** Who changed what in the tenant, the newest first. */
export function Audit() {
  const [filter, setFilter] = useState<AuditFilter>({});
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(auditQuery(useDeferredValue(filter)));
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  const field = (key: keyof AuditFilter, label: string, placeholder: string) => (
    <TextField
      label={label}
      type="search"
      placeholder={placeholder}
      value={filter[key] ?? ""}
      onChange={(event) => setFilter({ ...filter, [key]: event.target.value })}
    />
  );
  return (
    <Card title="Audit trail" flush actions={<a href="/api/v1/audit/export">Download all</a>}>
      <div className={styles.filters}>
        {field("actor", "Who", "administrator")}
        {field("action", "What", "study. or study.create")}
        {field("target", "To what", "study/my-study")}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="the audit trail" /> : null
      ) : entries.length === 0 ? (
        <Empty title="No entry matches" />
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Who</th>
              <th scope="col">What</th>
              <th scope="col">To what</th>
              <th scope="col">How</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td data-label="When">
                  <Ago at={entry.at} />
                </td>
                <td data-label="Who">
                  <span title={`${entry.credential} ${entry.address}`}>{entry.actor}</span>
                </td>
                <td data-label="What">
                  <code>{entry.action}</code>
                </td>
                <td data-label="To what" style={{ overflowWrap: "anywhere" }}>
                  {entry.target}
                </td>
                <td data-label="How">
                  <Details entry={entry} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hasNextPage ? (
        <div className={styles.more}>
          <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {isFetchingNextPage ? "Loading …" : "Show more"}
          </Button>
        </div>
      ) : null}
    </Card>
  );
}

function Details({ entry: { id, detail, before, after } }: { entry: { id: number; detail: unknown; before: unknown; after: unknown } }) {
  const told = Object.entries({ detail, before, after }).filter(([, value]) => value !== null && JSON.stringify(value) !== "{}");
  if (told.length === 0) return null;
  return (
    <details>
      <summary aria-label={`Details of entry ${id}`}>Details</summary>
      {told.map(([name, value]) => (
        <p key={name}>
          {name}
          <code className={styles.detail}>{JSON.stringify(value, null, 1)}</code>
        </p>
      ))}
    </details>
  );
}
