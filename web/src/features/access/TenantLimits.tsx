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

/** A dialogue that changes what a tenant may use. */
export function TenantLimits({ slug, limits }: { slug: string; limits: Limits }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`What ${slug} may use`}
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
      <p>{t`A field that is left empty stands for the installation’s limit; 0 allows nothing.`}</p>
      {LIMIT_NAMES.map((key) => (
        <TextField
          key={key}
          label={i18n._(LIMITS[key].limit)}
          inputMode="numeric"
          placeholder={t`the installation's`}
          value={written[key] ?? ""}
          error={wrong.includes(key) ? t`A whole number, or nothing.` : field === `limits.${key}` ? change.error?.message : undefined}
          onChange={(event) => setWritten({ ...written, [key]: event.target.value })}
        />
      ))}
      {change.error === null || known ? null : <Problem error={change.error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={change.isPending || wrong.length > 0}>
          {t`Set the limits`}
        </Button>
      </DialogActions>
    </form>
  );
}
