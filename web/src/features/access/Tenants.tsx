import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Conditions, type Filtered } from "@/components/Conditions";
import { TextField } from "@/components/Field";
import { Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { Tenant } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { useOneAtATime } from "@/lib/session";
import { tenantsQuery, useCreateTenant, useDisableTenant, type Limits } from "./api";
import styles from "./access.module.css";
import { LIMIT_NAMES, LIMITS, TenantLimits } from "./TenantLimits";

/* eslint-disable lingui/no-unlocalized-strings -- the words of conditions, which addresses hold in any language */
const COLUMNS: Columns<Tenant> = {
  tenant: { text: ({ slug }) => slug },
  name: { text: ({ name }) => name },
  state: { text: ({ disabled_at }) => (disabled_at === null ? "enabled" : "disabled") },
  limits: { text: ({ limits }) => LIMIT_NAMES.filter((key) => (limits[key] ?? null) !== null).join(" ") },
};
/* eslint-enable lingui/no-unlocalized-strings */

/** Show, for operators, the tenants of the installation. */
export function Tenants({ where, onWhere }: Filtered) {
  const { data, error, refetch } = useQuery(tenantsQuery);
  const { rows, wrong } = select(data?.tenants ?? [], where, COLUMNS);
  const [slug, setSlug] = useState("");
  const create = useCreateTenant();
  const add = useOneAtATime(create.mutate);
  return (
    <Card title={t`Tenants`} flush>
      {data === undefined ? null : <Conditions where={where} columns={Object.keys(COLUMNS)} example="state = disabled" wrong={wrong} matches={rows.length} onChange={onWhere} />}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`tenants`} /> : null
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Tenant`}</th>
              <th scope="col">{t`Created`}</th>
              <th scope="col">{t`State`}</th>
              <th scope="col">{t`Own limits`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.map((tenant) => (
              <tr key={tenant.slug}>
                <th scope="row">
                  {tenant.slug} <span className={table.soft}>{tenant.name}</span>
                </th>
                <td data-label={t`Created`}>
                  <Ago at={tenant.created_at} />
                </td>
                <td data-label={t`State`}>{tenant.disabled_at === null ? t`enabled` : t`disabled`}</td>
                <td data-label={t`Own limits`}>{ownLimits(tenant.limits)}</td>
                <td className={table.number}>
                  <span className={styles.buttons}>
                    <TenantLimits slug={tenant.slug} limits={tenant.limits} />
                    <Disable slug={tenant.slug} disabled={tenant.disabled_at !== null} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <form
        className={styles.row}
        onSubmit={(event) => {
          event.preventDefault();
          add(slug.trim(), () => setSlug(""));
        }}
      >
        <TextField label={t`Short name of the new tenant`} value={slug} error={create.error?.message} onChange={(event) => setSlug(event.target.value)} />
        <Button type="submit" disabled={slug.trim() === "" || create.isPending}>
          {t`Add`}
        </Button>
      </form>
    </Card>
  );
}

function ownLimits(limits: Limits): string {
  const own = LIMIT_NAMES.flatMap((key) => {
    const value = limits[key] ?? null;
    const { limit, format } = LIMITS[key];
    return value === null ? [] : [`${i18n._(limit)}: ${format(value)}`];
  });
  return own.join(", ") || "—";
}

function Disable({ slug, disabled }: { slug: string; disabled: boolean }) {
  const change = useDisableTenant(slug);
  return (
    <>
      <Button small disabled={change.isPending} aria-label={disabled ? t`Enable ${slug}` : t`Disable ${slug}`} onClick={() => change.mutate(!disabled)}>
        {disabled ? t`Enable` : t`Disable`}
      </Button>
      {change.error === null ? null : <Problem error={change.error} />}
    </>
  );
}
