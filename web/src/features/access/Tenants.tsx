import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { tenantsQuery, useCreateTenant, useDisableTenant } from "./api";
import styles from "./access.module.css";

/** The tenants of the installation, for its operators. */
export function Tenants() {
  const { data, error, refetch } = useQuery(tenantsQuery);
  const [slug, setSlug] = useState("");
  const create = useCreateTenant();
  return (
    <Card title="Tenants" flush>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="tenants" /> : null
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Tenant</th>
              <th scope="col">Made</th>
              <th scope="col">State</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {data.tenants.map((tenant) => (
              <tr key={tenant.slug}>
                <th scope="row">
                  {tenant.slug} <span className={table.soft}>{tenant.name}</span>
                </th>
                <td data-label="Made">
                  <Ago at={tenant.created_at} />
                </td>
                <td data-label="State">{tenant.disabled_at === null ? "enabled" : "disabled"}</td>
                <td className={table.number}>
                  <Disable slug={tenant.slug} disabled={tenant.disabled_at !== null} />
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
          create.mutate(slug.trim(), { onSuccess: () => setSlug("") });
        }}
      >
        <TextField label="Short name of a new tenant" value={slug} error={create.error?.message} onChange={(event) => setSlug(event.target.value)} />
        <Button type="submit" disabled={slug.trim() === "" || create.isPending}>
          Add
        </Button>
      </form>
    </Card>
  );
}

function Disable({ slug, disabled }: { slug: string; disabled: boolean }) {
  const change = useDisableTenant(slug);
  return (
    <>
      <Button small disabled={change.isPending} aria-label={`${disabled ? "Enable" : "Disable"} ${slug}`} onClick={() => change.mutate(!disabled)}>
        {disabled ? "Enable" : "Disable"}
      </Button>
      {change.error === null ? null : <Problem error={change.error} />}
    </>
  );
}
