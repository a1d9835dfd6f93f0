import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Loading, Problem } from "@/components/Message";
import { ApiError } from "@/lib/api/client";
import { formatBytes, formatNumber } from "@/lib/format";
import styles from "./access.module.css";
import { quotaQuery, useLimitTenant, type Limits } from "./api";

/** A dialog that changes the limits of a tenant. */
export function TenantLimits({ slug, limits }: { slug: string; limits: Limits }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`Limits of ${slug}`}
      trigger={
        <Button small aria-label={t`Limits of ${slug}`}>
          {t`Limits`}
        </Button>
      }
    >
      <Fields slug={slug} limits={limits} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Fields({ slug, limits, onDone }: { slug: string; limits: Limits; onDone: () => void }) {
  const [written, setWritten] = useState(() => Object.fromEntries(LIMIT_NAMES.map((key) => [key, String(limits[key] ?? "")])));
  const change = useLimitTenant(slug);
  const field = change.error instanceof ApiError ? change.error.data.field : undefined;
  const wrong = LIMIT_NAMES.filter((key) => !/^\d*$/.test(written[key]?.trim() ?? ""));
  const known = LIMIT_NAMES.some((key) => field === `limits.${key}`);
  return (
    <form
      className={styles.fields}
      onSubmit={(event) => {
        event.preventDefault();
        const changed = LIMIT_NAMES.map((key) => [key, written[key]?.trim() ? Number(written[key]) : null] as const).filter(
          ([key, value]) => value !== (limits[key] ?? null),
        );
        change.mutate(Object.fromEntries(changed), { onSuccess: onDone });
      }}
    >
      <p>{t`Leave a field empty to use the limit of the installation. 0 allows nothing.`}</p>
      {LIMIT_NAMES.map((key) => (
        <TextField
          key={key}
          label={i18n._(LIMITS[key].limit)}
          inputMode="numeric"
          placeholder={t`limit of the installation`}
          value={written[key] ?? ""}
          error={wrong.includes(key) ? t`Enter a whole number, or leave the field empty.` : field === `limits.${key}` ? change.error?.message : undefined}
          onChange={(event) => setWritten({ ...written, [key]: event.target.value })}
        />
      ))}
      {change.error === null || known ? null : <Problem error={change.error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={change.isPending || wrong.length > 0}>
          {t`Save limits`}
        </Button>
      </DialogActions>
    </form>
  );
}

/** Show the tenant's limits and its usage. */
export function Quota() {
  const { data, error, refetch } = useQuery(quotaQuery);
  return (
    <Card title={t`Quota`}>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`quota`} /> : null
      ) : (
        <dl className={styles.quota}>
          {LIMIT_NAMES.map((key) => {
            const { used: label, format } = LIMITS[key];
            const name = i18n._(label);
            const used = data.used[key];
            const limit = data.limits[key];
            return (
              <div key={key}>
                <dt>{name}</dt>
                <dd>
                  <b>{format(used)}</b> <span className={styles.soft}>{limit === null ? t`no limit set` : t`of ${format(limit)}`}</span>
                  {limit === null ? null : <meter aria-label={name} min={0} max={Math.max(limit, 1)} high={0.9 * limit} value={Math.min(used, limit)} />}
                </dd>
              </div>
            );
          })}
        </dl>
      )}
    </Card>
  );
}

/** The limits of a tenant by their names in the API, with the texts for the usage and for the limit. */
export const LIMITS = {
  studies: { used: msg`Studies`, limit: msg`Studies`, format: formatNumber },
  active_trials: { used: msg`Active trials`, limit: msg`Active trials`, format: formatNumber },
  stored_trials: { used: msg`Stored trials`, limit: msg`Stored trials`, format: formatNumber },
  log_bytes: { used: msg`Logs and files`, limit: msg`Logs and files, in bytes`, format: formatBytes },
  suggestions_per_minute: { used: msg`Suggestions this minute`, limit: msg`Suggestions per minute`, format: formatNumber },
  worker_seconds_per_day: { used: msg`Worker seconds today`, limit: msg`Worker seconds per day`, format: formatNumber },
  matching_records: { used: msg`Matching records`, limit: msg`Matching records`, format: formatNumber },
} as const;

export type Limit = keyof typeof LIMITS;

export const LIMIT_NAMES = Object.keys(LIMITS) as Limit[];
