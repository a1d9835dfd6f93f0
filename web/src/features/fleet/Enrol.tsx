import { useState } from "react";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog, DialogActions } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import { formatTime } from "@/lib/format";
import { useEnrolment } from "./api";
import { enrolmentCommand } from "./command";

/** A dialogue that makes a right to enrol one agent, and the command that uses it. */
export function Enrol() {
  const [open, setOpen] = useState(false);
  return (
    <Dialog open={open} onOpenChange={setOpen} title="Enrol an agent" trigger={<Button kind="primary">Enrol an agent …</Button>}>
      <Steps onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Steps({ onDone }: { onDone: () => void }) {
  const [minutes, setMinutes] = useState("60");
  const [server, setServer] = useState(`${location.hostname}:8471`);
  const enrol = useEnrolment();
  const made = enrol.data;
  if (made === undefined) {
    return (
      <>
        <p>An agent runs trials on a machine, or as jobs of its cluster, with the components that are installed there.</p>
        <TextField label="Address of the service, as the agent reaches it" value={server} onChange={(event) => setServer(event.target.value)} />
        <SelectField label="The command is good for" value={minutes} onChange={(event) => setMinutes(event.target.value)}>
          <option value="15">15 minutes</option>
          <option value="60">an hour</option>
          <option value="1440">a day</option>
          <option value="10080">a week</option>
        </SelectField>
        {enrol.error === null ? null : <Problem error={enrol.error} />}
        <DialogActions>
          <Button onClick={onDone}>Cancel</Button>
          <Button kind="primary" disabled={enrol.isPending} onClick={() => enrol.mutate(Number(minutes))}>
            Make the command
          </Button>
        </DialogActions>
      </>
    );
  }
  const command = enrolmentCommand(server, made.secret);
  return (
    <>
      <p>
        On the machine, with Trimtab&rsquo;s agent installed. It enrols one agent, once, until {formatTime(new Date(made.expires_at))}. It is shown only here.
      </p>
      <Code>{command}</Code>
      <DialogActions>
        <CopyButton text={command} label="Copy the command" />
        <Button kind="primary" onClick={onDone}>
          Done
        </Button>
      </DialogActions>
    </>
  );
}
