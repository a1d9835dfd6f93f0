import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import { formatTime } from "@/lib/format";
import { useOneAtATime, useServer } from "@/lib/session";
import { quoted } from "@/lib/words";
import { useEnrolment } from "./api";

/** A dialog that creates a one-time enrolment token and shows the command that uses it. */
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
          label={t`Service address, as seen from the agent`}
          value={server}
          error={isAddress(server) ? undefined : t`Enter a host and a port, such as ${"tune.example.org:443"}.`}
          onChange={(event) => setServer(event.target.value)}
        />
        <SelectField label={t`Valid for`} value={minutes} onChange={(event) => setMinutes(event.target.value)}>
          <option value="15">{t`15 minutes`}</option>
          <option value="60">{t`1 hour`}</option>
          <option value="1440">{t`1 day`}</option>
          <option value="10080">{t`1 week`}</option>
        </SelectField>
        {enrol.error === null ? null : <Problem error={enrol.error} />}
        <DialogActions>
          <Button onClick={onDone}>{t`Cancel`}</Button>
          <Button kind="primary" disabled={enrol.isPending || !isAddress(server)} onClick={() => make(Number(minutes))}>
            {t`Create command`}
          </Button>
        </DialogActions>
      </>
    );
  }
  const command = enrolmentCommand(server, made.secret);
  return (
    <>
      <p>
        {t`Run this command on a machine where the Trimtab agent is installed. It enrols one agent, once, and expires at ${formatTime(new Date(made.expires_at))}. It is not shown again.`}
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

/** The agent's environment variable for the token. All users of a machine see the arguments of its processes. */
const VARIABLE = "TRIMTAB_ENROL_TOKEN";

/** Return the command that starts an agent and enrols it, with its words quoted for a shell. */
export function enrolmentCommand(server: string, secret: string): string {
  // eslint-disable-next-line lingui/no-unlocalized-strings -- a command
  return `${VARIABLE}=${quoted(secret)} trimtab-agent run \\\n    --server ${quoted(server.trim())} \\\n    --components ./components`;
}

/** Return whether a text is an address that an agent accepts: HOST:PORT. */
export function isAddress(text: string): boolean {
  const match = /^[^\s/]+:(\d{1,5})$/.exec(text.trim());
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65536;
}
