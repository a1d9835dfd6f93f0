import { plural, t } from "@lingui/core/macro";
import { useId, useMemo, useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { Code, Empty, Problem } from "@/components/Message";
import { ApiError, type JobToMatch, type MatchingRecord } from "@/lib/api/client";
import { useMatch } from "./api";
import type { Host } from "./hosts";
import { FIELDS_OF_JOBS, readJob, submitted, type JobFault, type JobFields } from "./job";
import { MatchCard } from "./MatchCard";
import styles from "./matching.module.css";

const EXAMPLE = `#!/bin/sh
#SBATCH --job-name=ant --nodes=4
srun ./ant --grid 64`;

interface Props {
  hosts: readonly Host[];
  /** The name of the user who is signed in. */
  user: string;
  /** A link to a record. */
  link: (record: MatchingRecord) => ReactNode;
}

/** Explain which records a job resembles: the job is pasted or written, and nothing is changed. */
export function Explain({ hosts, user, link }: Props) {
  const [text, setText] = useState("");
  const [own, setOwn] = useState<Partial<JobFields>>({});
  const [faults, setFaults] = useState<readonly JobFault[]>([]);
  const [asked, setAsked] = useState<JobToMatch | null>(null);
  const match = useMatch();
  const reading = useMemo(() => readJob(text), [text]);
  const fields: Partial<JobFields> = { user, ...reading.job, ...own };
  const refused = refusalOf(match.error);
  const errorAt = (field: keyof JobFields) => faults.find((one) => one.field === field)?.message ?? (refused?.field === `job.${field}` ? refused.message : undefined);
  const field = (name: keyof JobFields, label: string, rest: { hint?: string; inputMode?: "numeric"; type?: "datetime-local" } = {}) => (
    <TextField label={label} value={fields[name] ?? ""} error={errorAt(name)} onChange={(event) => setOwn({ ...own, [name]: event.target.value })} {...rest} />
  );
  const textError = reading.fault ?? errorAt("command_line");
  const elsewhere = refused !== null && isShown(refused.field) ? null : match.error;
  return (
    <div className={styles.stack}>
      <Card title={t`Job`}>
        <form
          className={styles.form}
          onSubmit={(event) => {
            event.preventDefault();
            const job = submitted(fields);
            setFaults(job.faults);
            if (job.faults.length > 0 || reading.fault !== undefined) return;
            setAsked(job.job);
            match.mutate(job.job);
          }}
        >
          <Pasted
            text={text}
            error={textError}
            onText={(next) => {
              setText(next);
              // What was read before does not belong to another text.
              setOwn({});
              setFaults([]);
              match.reset();
            }}
          />
          {reading.kind === "script" && !fields.program ? (
            <p className={styles.note}>{t`Agents compare the name of the script’s file, which its text does not have. Enter it as the program.`}</p>
          ) : null}
          <div className={styles.grid}>
            {field("user", t`User`)}
            {field("name", t`Job name`)}
            {field("program", t`Program`)}
            {field("nodes", t`Nodes`, { inputMode: "numeric" })}
            {field("cluster_nodes", t`Nodes of the cluster`, { inputMode: "numeric" })}
            {field("partition", t`Partition`)}
            {field("cluster", t`Cluster`)}
            {field("submitted_at", t`Submitted at`, { type: "datetime-local", hint: t`Empty: now.` })}
          </div>
          <div className={styles.buttons}>
            <Button type="submit" kind="primary" disabled={match.isPending}>
              {match.isPending ? t`Comparing …` : t`Explain match`}
            </Button>
            <span className={styles.note}>{t`Nothing is changed, and the job is not kept.`}</span>
          </div>
          {elsewhere === null ? null : <Problem error={elsewhere} />}
        </form>
      </Card>
      {match.data === undefined || asked === null ? null : match.data.matches.length === 0 ? (
        <Card title={t`Candidates`}>
          <Empty title={t`No record can match the job`}>
            <p>{t`There is no active record. A study on agents with one objective writes one when it ends with a proven gain:`}</p>
            <Code>trimtab tune study.yaml</Code>
          </Empty>
        </Card>
      ) : (
        <section className={styles.stack} aria-label={t`Candidates`}>
          <p role="status">{plural(match.data.matches.length, { one: "# candidate: the record that the job resembles most.", other: "# candidates: the record of each component that the job resembles most, best first." })}</p>
          {match.data.matches.map((one) => (
            <MatchCard key={one.record.id} match={one} job={{ user: asked.user, partition: asked.partition }} hosts={hosts} record={link(one.record)} />
          ))}
        </section>
      )}
    </div>
  );
}

interface PastedProps {
  text: string;
  error: string | undefined;
  onText: (text: string) => void;
}

function Pasted({ text, error, onText }: PastedProps) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {t`Command, batch script, or job in JSON or YAML`}
      </label>
      <textarea
        id={id}
        className={styles.text}
        value={text}
        spellCheck={false}
        placeholder={EXAMPLE}
        aria-invalid={error === undefined ? undefined : true}
        aria-describedby={`${id}-hint${error === undefined ? "" : ` ${id}-error`}`}
        onChange={(event) => onText(event.target.value)}
      />
      {error === undefined ? null : (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
      <p id={`${id}-hint`} className={styles.note}>
        {t`The fields below are read from the text. Change them where they differ.`}
      </p>
    </div>
  );
}

/** Return the field that the service refuses, and its message; null for another error. */
function refusalOf(error: Error | null): JobFault | null {
  if (!(error instanceof ApiError)) return null;
  const { field } = error.data;
  return typeof field === "string" ? { field, message: error.message } : null;
}

/** Return whether the form shows the messages of a field, as the service names it. */
function isShown(field: string): boolean {
  return FIELDS_OF_JOBS.some((one) => field === `job.${one}`);
}
