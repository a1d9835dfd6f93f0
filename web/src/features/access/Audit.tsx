import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { Card } from "@/components/Card";
import { Conditions, refusalOf } from "@/components/Conditions";
import { TextField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import { MoreButton } from "@/components/Button";
import { Segments } from "@/components/Select";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { AUDIT_COLUMNS } from "@/lib/columns";
import { auditQuery, type AuditFilter } from "./api";
import styles from "./access.module.css";

interface Props {
  filter: AuditFilter;
  onFilter: (changes: AuditFilter) => void;
}

/** Show the audit trail of the tenant, newest first. */
export function Audit({ filter, onFilter }: Props) {
  const query = useInfiniteQuery(auditQuery(useDeferredValue(filter)));
  const { data, error, refetch } = query;
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  const field = (key: Exclude<keyof AuditFilter, "where">, label: string, type: "search" | "date", example = "") => (
    <TextField
      label={label}
      type={type}
      placeholder={example}
      value={filter[key] ?? ""}
      onChange={(event) => onFilter({ [key]: event.target.value || undefined })}
    />
  );
  return (
    <Card title={t`Audit trail`} flush actions={<a href="/api/v1/audit/export">{t`Download all`}</a>}>
      <div className={styles.padded}>
        <Segments
          label={t`Changes by`}
          value={filter.by ?? "all"}
          onChange={(by) => onFilter({ by: by === "all" ? undefined : by })}
          options={[
            { value: "all", text: t`All` },
            { value: "people", text: t`People and scripts` },
            { value: "machinery", text: t`Service and agents` },
          ]}
        />
      </div>
      <div className={styles.filters}>
        {field("actor", t`Actor`, "search", t`full name, e.g. ${"administrator"}`)}
        {field("action", t`Action`, "search", t`begins with, e.g. ${"study."}`)}
        {field("target", t`Target`, "search", t`begins with, e.g. ${"study/my-study"}`)}
        {field("from", t`From date`, "date")}
        {field("to", t`To date`, "date")}
      </div>
      <Conditions where={filter.where ?? []} error={error} columns={AUDIT_COLUMNS} example="actor != system" onChange={(where) => onFilter({ where })} />
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`audit trail`} /> : null
      ) : entries.length === 0 ? (
        <Empty title={t`No matching entries`} />
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Time`}</th>
              <th scope="col">{t`Actor`}</th>
              <th scope="col">{t`Action`}</th>
              <th scope="col">{t`Target`}</th>
              <th scope="col">{t`Details`}</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td data-label={t`Time`}>
                  <Ago at={entry.at} />
                </td>
                <td data-label={t`Actor`}>
                  <span title={`${entry.credential} ${entry.address}`}>{entry.actor}</span>
                </td>
                <td data-label={t`Action`}>
                  <code>{entry.action}</code>
                </td>
                <td data-label={t`Target`} style={{ overflowWrap: "anywhere" }}>
                  {entry.target}
                </td>
                <td data-label={t`Details`}>
                  <Details entry={entry} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {query.hasNextPage ? (
        <div className={styles.more}>
          <MoreButton query={query} />
        </div>
      ) : null}
    </Card>
  );
}

function Details({ entry: { id, detail, before, after } }: { entry: { id: number; detail: unknown; before: unknown; after: unknown } }) {
  const parts = Object.entries({ detail, before, after }).filter(([, value]) => value !== null && JSON.stringify(value) !== "{}");
  if (parts.length === 0) return null;
  return (
    <details>
      <summary aria-label={t`Details of entry ${id}`}>{t`Details`}</summary>
      {parts.map(([name, value]) => (
        <p key={name}>
          {name}
          <code className={styles.detail}>{JSON.stringify(value, null, 1)}</code>
        </p>
      ))}
    </details>
  );
}
