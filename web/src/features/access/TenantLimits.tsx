import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError } from "@/lib/api/client";
import { useLimitTenant, type Limits } from "./api";
import styles from "./access.module.css";
import { LIMIT_NAMES, LIMITS } from "./limits";

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
