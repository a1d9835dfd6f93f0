import { plural, t } from "@lingui/core/macro";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type ReactNode } from "react";
import { Tags } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { Markdown } from "@/components/Markdown";
import { Problem } from "@/components/Message";
import { Ago } from "@/components/Time";
import { api, unwrap, type Note } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import styles from "./notes.module.css";

interface Props {
  study: string;
  /** The trial of the note; undefined: the note of the study, with links to the notes of its trials. */
  trial?: number;
  revision: number;
  mayWrite: boolean;
  /** A link to a trial's page. */
  link?: (trial: number) => ReactNode;
}

/** The note of a study or trial: text, tags and the attributes that programs have set. Nothing without a note that the user may not write. */
export function NoteCard({ study, trial, revision, mayWrite, link }: Props) {
  const [editing, setEditing] = useState(false);
  const { data, error, refetch } = useQuery(notesQuery(study, trial, revision));
  const note = data?.notes.find((one) => one.trial === (trial ?? null));
  const others = trial === undefined ? (data?.notes.filter((one) => one.trial !== null && one.text + one.tags.join() !== "") ?? []) : [];
  if (error !== null) return <Problem error={error} again={() => void refetch()} />;
  if (data === undefined || (!mayWrite && note === undefined && others.length === 0)) return null;
  return (
    <Card
      title={t`Notes`}
      actions={
        mayWrite && !editing ? (
          <Button small onClick={() => setEditing(true)}>
            {note?.text ? t`Edit the note` : t`Write a note`}
          </Button>
        ) : null
      }
    >
      {editing ? <Editor study={study} trial={trial} note={note} onDone={() => setEditing(false)} /> : <Shown note={note} />}
      {others.length > 0 ? (
        <details className={styles.others}>
          <summary>{plural(others.length, { one: "Note on # trial", other: "Notes on # trials" })}</summary>
          <ul>
            {others.map((one) => (
              <li key={one.trial}>
                {link?.(one.trial ?? 0)} <Tags tags={one.tags} /> {one.text.split("\n")[0]}
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </Card>
  );
}

function Shown({ note }: { note: Note | undefined }) {
  if (note === undefined) return <p className={styles.soft}>{t`There is no note.`}</p>;
  const attributes = Object.entries(note.attributes);
  return (
    <div className={styles.note}>
      {note.tags.length > 0 ? (
        <p>
          <Tags tags={note.tags} />
        </p>
      ) : null}
      {note.text === "" ? null : <Markdown text={note.text} />}
      {attributes.length > 0 ? (
        <dl className={styles.attributes}>
          {attributes.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{formatValue(value)}</dd>
            </div>
          ))}
        </dl>
      ) : null}
      <p className={styles.soft}>
        {t`Changed by ${note.changed_by}`} <Ago at={note.changed_at} />
      </p>
    </div>
  );
}

interface EditorProps {
  study: string;
  trial: number | undefined;
  note: Note | undefined;
  onDone: () => void;
}

function Editor({ study, trial, note, onDone }: EditorProps) {
  const id = useId();
  const [text, setText] = useState(note?.text ?? "");
  const [tags, setTags] = useState(note?.tags.join(", ") ?? "");
  const change = useChangeNote(study, trial);
  return (
    <form
      className={styles.note}
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = tags.split(",").flatMap((tag) => tag.trim() || []);
        change.mutate({ text, ...(trial === undefined ? {} : { tags: wanted }) }, { onSuccess: onDone });
      }}
    >
      <label htmlFor={id}>{t`Note (Markdown)`}</label>
      <textarea id={id} className={styles.text} rows={6} value={text} onChange={(event) => setText(event.target.value)} />
      {trial === undefined ? null : <TextField label={t`Tags`} hint={t`Separate tags with commas.`} value={tags} onChange={(event) => setTags(event.target.value)} />}
      {change.error === null ? null : <Problem error={change.error} />}
      <div className={styles.buttons}>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button kind="primary" type="submit" disabled={change.isPending}>
          {t`Save`}
        </Button>
      </div>
    </form>
  );
}

/** The notes of a study and its trials; with a trial, only its note. `revision`: a change of the study has them fetched again. */
function notesQuery(study: string, trial: number | undefined, revision: number) {
  return queryOptions({
    queryKey: ["notes", study, trial ?? null, revision],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/notes", { params: { path: { name: study }, query: trial === undefined ? {} : { trial } } })),
    placeholderData: (before) => before,
  });
}

interface NoteChange {
  text?: string;
  tags?: string[];
}

/** Change the note of a trial, or without a number the note of the study. */
function useChangeNote(study: string, trial: number | undefined) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: NoteChange) =>
      trial === undefined
        ? unwrap(api.PATCH("/api/v1/studies/{name}/note", { params: { path: { name: study } }, body: change }))
        : unwrap(api.PATCH("/api/v1/studies/{name}/trials/{number}/note", { params: { path: { name: study, number: trial } }, body: change })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["notes", study] }),
  });
}
