import { useState, type SubmitEvent } from "react";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import { ApiError } from "@/lib/api/client";
import { useCreateToken } from "./api";

const MEANINGS: Record<string, string> = {
  read: "look at studies, trials and agents",
  tune: "create and change studies, ask and tell",
  agent: "run trials as an agent",
  admin: "all that you may do",
};

/** A dialogue that makes a token and shows its secret, once. */
export function CreateToken({ scopes }: { scopes: readonly string[] }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog open={open} onOpenChange={setOpen} title="New API token" trigger={<Button small>New token …</Button>}>
      <Steps scopes={scopes} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Steps({ scopes, onDone }: { scopes: readonly string[]; onDone: () => void }) {
  const create = useCreateToken();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>(["read", "tune"].filter((scope) => scopes.includes(scope)));
  const [study, setStudy] = useState("");
  const [days, setDays] = useState("90");
  const refused = create.error;
  const field = refused instanceof ApiError ? refused.data.field : undefined;
  const about = (which: string) => (field === which ? refused?.message : undefined);

  if (create.data !== undefined) {
    const { secret } = create.data;
    return (
      <>
        <p>This is the only time that it is shown. Keep it where you keep passwords.</p>
        <Code>{secret}</Code>
        <DialogActions>
          <CopyButton text={secret} label="Copy the token" />
          <Button kind="primary" onClick={onDone}>
            Done
          </Button>
        </DialogActions>
      </>
    );
  }

  function submit(event: SubmitEvent) {
    event.preventDefault();
    create.mutate({ name: name.trim(), scopes: [...chosen], study: study.trim() || null, days: Number(days) });
  }
  return (
    <form onSubmit={submit} style={{ display: "contents" }}>
      <TextField label="Name" hint="What it is for." required maxLength={200} value={name} error={about("name")} onChange={(event) => setName(event.target.value)} />
      <fieldset style={{ display: "grid", gap: "0.3rem" }}>
        <legend>It may</legend>
        {scopes.map((scope) => (
          <CheckField
            key={scope}
            label={`${scope}: ${MEANINGS[scope] ?? ""}`}
            checked={chosen.includes(scope)}
            onChange={(event) => setChosen(event.target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
          />
        ))}
      </fieldset>
      <TextField
        label="Only in the study"
        hint="Empty: in all of them."
        value={study}
        error={about("study") ?? (refused instanceof ApiError && refused.code === "study_not_found" ? refused.message : undefined)}
        onChange={(event) => setStudy(event.target.value)}
      />
      <SelectField label="Ends after" value={days} error={about("days")} onChange={(event) => setDays(event.target.value)}>
        <option value="7">a week</option>
        <option value="30">30 days</option>
        <option value="90">90 days</option>
        <option value="366">a year</option>
      </SelectField>
      {refused === null || field === "name" || field === "days" || field === "study" ? null : <Problem error={refused} />}
      <DialogActions>
        <Button onClick={onDone}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={create.isPending || chosen.length === 0}>
          Make the token
        </Button>
      </DialogActions>
    </form>
  );
}
