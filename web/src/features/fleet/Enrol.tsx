import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog, DialogActions } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import { formatTime } from "@/lib/format";
import { useOneAtATime } from "@/lib/once";
import { useServer } from "@/lib/session";
import { useEnrolment } from "./api";
import { enrolmentCommand, isAddress } from "./command";

/** A dialogue that makes a right to enrol one agent, and the command that uses it. */
export function Enrol() {
  const [open, setOpen] = useState(false);
  return (
    <Dialog open={open} onOpenChange={setOpen} title={t`Enrol an agent`} trigger={<Button kind="primary">{t`Enrol an agent …`}</Button>}>
      <Steps onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Steps({ onDone }: { onDone: () => void }) {
  const [minutes, setMinutes] = useState("60");
  const [server, setServer] = useState(useServer());
  const enrol = useEnrolment();
  const make = useOneAtATime(enrol.mutate);
  const made = enrol.data;
  if (made === undefined) {
    return (
      <>
        <p>{t`An agent runs trials on a machine, or as jobs of its cluster, with the components that are installed there.`}</p>
        <TextField
          label={t`Address of the service, as the agent reaches it`}
          value={server}
          error={isAddress(server) ? undefined : t`A host and a port, such as ${"tune.example.org:443"}.`}
          onChange={(event) => setServer(event.target.value)}
        />
        <SelectField label={t`The command is good for`} value={minutes} onChange={(event) => setMinutes(event.target.value)}>
          <option value="15">{t`15 minutes`}</option>
          <option value="60">{t`an hour`}</option>
          <option value="1440">{t`a day`}</option>
          <option value="10080">{t`a week`}</option>
        </SelectField>
        {enrol.error === null ? null : <Problem error={enrol.error} />}
        <DialogActions>
          <Button onClick={onDone}>{t`Cancel`}</Button>
          <Button kind="primary" disabled={enrol.isPending || !isAddress(server)} onClick={() => make(Number(minutes))}>
            {t`Make the command`}
          </Button>
        </DialogActions>
      </>
    );
  }
  const command = enrolmentCommand(server, made.secret);
  return (
    <>
      <p>
        {t`On the machine, with Trimtab’s agent installed. It enrols one agent, once, until ${formatTime(new Date(made.expires_at))}. It is shown only here.`}
      </p>
      <Code>{command}</Code>
      <DialogActions>
        <CopyButton text={command} label={t`Copy the command`} />
        <Button kind="primary" onClick={onDone}>
          {t`Done`}
        </Button>
      </DialogActions>
    </>
  );
}
