import { t } from "@lingui/core/macro";
import { useState, type ReactNode } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { WrittenComponent } from "@/lib/api/client";
import { useServer } from "@/lib/session";
import { quoted } from "@/lib/words";
import { useDeleteFiles } from "./api";
import styles from "./Files.module.css";

interface Props {
  name: string;
  /** The newest first. */
  files: readonly WrittenComponent[];
  mayWrite: boolean;
  /** A link to a new version that begins with this one's text. */
  edit: (number: number) => ReactNode;
}

/** Show the versions written in the console, the agents that offer them, and the command that installs the newest one. */
export function Files({ name, files, mayWrite, edit }: Props) {
  const newest = files[0];
  if (newest === undefined) return null;
  return (
    <Card title={t`Versions written in the console`} flush actions={mayWrite ? <Delete name={name} /> : undefined}>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Version`}</th>
            <th scope="col">{t`State`}</th>
            <th scope="col">{t`Digest`}</th>
            <th scope="col">{t`Author`}</th>
            <th scope="col" className={table.number}>
              {t`Written`}
            </th>
            <td />
          </tr>
        </thead>
        <tbody>
          {files.map((file) => (
            <tr key={file.number}>
              <th scope="row">{file.number}</th>
              <td data-label={t`State`}>
                <FileState file={file} newest={file === newest} />
              </td>
              <td data-label={t`Digest`}>
                <code title={file.sha256}>{file.sha256.slice(0, 12)}</code>
              </td>
              <td data-label={t`Author`}>{file.author}</td>
              <td data-label={t`Written`} className={table.number}>
                <Ago at={file.written_at} />
              </td>
              <td className={table.number}>{edit(file.number)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Install name={name} file={newest} />
    </Card>
  );
}

/** Show whether agents offer a version, or it waits for an administrator. */
export function FileState({ file, newest }: { file: WrittenComponent; newest: boolean }) {
  if (file.agents.length > 0) return <span className={styles.offered}>{t`offered by ${file.agents.map((agent) => agent.name).join(", ")}`}</span>;
  return newest ? <span className={styles.waits}>{t`waiting to be installed`}</span> : <span className={table.soft}>{t`not installed`}</span>;
}

function Install({ name, file }: { name: string; file: WrittenComponent }) {
  const [server, setServer] = useState(useServer());
  const command = pullCommand(name, server, file.sha256);
  return (
    <div className={styles.install}>
      <p>
        {file.agents.length > 0
          ? t`To use version ${file.number} on another cluster, its administrator reviews it and installs it in the agent’s component folder with this command.`
          : t`No agent offers version ${file.number} yet. The administrator of a cluster reviews it and installs it in the agent’s component folder with this command.`}{" "}
        {t`The service never sends a command to a cluster.`}
      </p>
      <TextField label={t`Service address, as seen from the cluster`} value={server} onChange={(event) => setServer(event.target.value)} />
      <Code>{command}</Code>
      <div>
        <CopyButton text={command} label={t`Copy the command`} />
      </div>
    </div>
  );
}

function Delete({ name }: { name: string }) {
  const [open, setOpen] = useState(false);
  const remove = useDeleteFiles(name);
  return (
    <Dialog open={open} onOpenChange={setOpen} title={t`Delete all written versions of ${name}?`} trigger={<Button small>{t`Delete …`}</Button>}>
      <p>{t`This deletes all versions written in the console. Versions installed on clusters stay there and can still be tuned.`}</p>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate(undefined, { onSuccess: () => setOpen(false) })}>
          {t`Delete`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

/** Return the command with which a cluster's administrator reviews and installs exactly this version. */
export function pullCommand(name: string, server: string, sha256: string): string {
  return `trimtab-agent pull ${quoted(name)} \\\n    --server ${quoted(server.trim())} \\\n    --components ./components \\\n    --digest ${sha256}`;
}
