import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useState, type SubmitEvent } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import { ApiError } from "@/lib/api/client";
import { useOneAtATime } from "@/lib/session";
import { useCreateToken } from "./api";

const MEANINGS: Record<string, MessageDescriptor> = {
  read: msg`view studies, trials and agents`,
  tune: msg`create and change studies, request and report trials`,
  agent: msg`run trials as an agent`,
  admin: msg`everything that you may do`,
};

/** A dialog that creates a token and shows its secret once. */
export function CreateToken({ scopes }: { scopes: readonly string[] }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog open={open} onOpenChange={setOpen} title={t`New API token`} trigger={<Button small>{t`New token …`}</Button>}>
      <Steps scopes={scopes} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Steps({ scopes, onDone }: { scopes: readonly string[]; onDone: () => void }) {
  const create = useCreateToken();
  const make = useOneAtATime(create.mutate);
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>(["read", "tune"].filter((scope) => scopes.includes(scope)));
  const [study, setStudy] = useState("");
  const [days, setDays] = useState("90");
  const refused = create.error;
  const field = refused instanceof ApiError ? refused.data.field : undefined;
  const about = (which: string) => (field === which ? refused?.message : undefined);
  const noStudy = refused instanceof ApiError && refused.code === "study_not_found";

  if (create.data !== undefined) {
    const { secret } = create.data;
    return (
      <>
        <p>{t`The token is shown only once. Store it like a password.`}</p>
        <Code>{secret}</Code>
        <DialogActions>
          <CopyButton text={secret} label={t`Copy the token`} />
          <Button kind="primary" onClick={onDone}>
            {t`Done`}
          </Button>
        </DialogActions>
      </>
    );
  }

  function submit(event: SubmitEvent) {
    event.preventDefault();
    make({ name: name.trim(), scopes: [...chosen], study: study.trim() || null, days: Number(days) });
  }
  return (
    <form onSubmit={submit} style={{ display: "contents" }}>
      <TextField label={t`Name`} hint={t`The purpose of the token.`} required maxLength={200} value={name} error={about("name")} onChange={(event) => setName(event.target.value)} />
      <fieldset style={{ display: "grid", gap: "0.3rem" }}>
        <legend>{t`Permissions`}</legend>
        {scopes.map((scope) => (
          <CheckField
            key={scope}
            label={[scope, ...(MEANINGS[scope] === undefined ? [] : [i18n._(MEANINGS[scope])])].join(": ")}
            checked={chosen.includes(scope)}
            onChange={(event) => setChosen(event.target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
          />
        ))}
      </fieldset>
      <TextField
        label={t`Limit to study`}
        hint={t`Leave empty to allow all studies.`}
        value={study}
        error={about("study") ?? (noStudy ? refused.message : undefined)}
        onChange={(event) => setStudy(event.target.value)}
      />
      <SelectField label={t`Expires after`} value={days} error={about("days")} onChange={(event) => setDays(event.target.value)}>
        <option value="7">{t`7 days`}</option>
        <option value="30">{t`30 days`}</option>
        <option value="90">{t`90 days`}</option>
        <option value="366">{t`1 year`}</option>
      </SelectField>
      {refused === null || noStudy || field === "name" || field === "days" || field === "study" ? null : <Problem error={refused} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button kind="primary" type="submit" disabled={create.isPending || chosen.length === 0}>
          {t`Create token`}
        </Button>
      </DialogActions>
    </form>
  );
}
