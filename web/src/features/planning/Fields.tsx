import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { TextField } from "@/components/Field";
import { textOf, valueOf, valuesOf } from "@/lib/values";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";

interface Props {
  label: string;
  value: unknown;
  /** The value of an empty field. */
  placeholder?: string;
  hint?: string;
  error?: string | undefined;
  bare?: boolean;
  list?: boolean;
  onChange: (value: unknown) => void;
}

/** A field for a value, or for several separated by commas. Unfinished input ("0.", "a,") stays as typed. */
export function ValueField({ label, value, placeholder, hint, error, bare, list = false, onChange }: Props) {
  const [typed, setTyped] = useState(textOf(value));
  const read = (text: string): unknown => (text.trim() === "" ? undefined : list ? valuesOf(text) : valueOf(text));
  // A change of the study file has priority.
  const shown = textOf(read(typed)) === textOf(value) ? typed : textOf(value);
  return (
    <TextField
      label={label}
      value={shown}
      error={error}
      {...(placeholder === undefined ? {} : { placeholder })}
      {...(hint === undefined ? {} : { hint })}
      {...(bare === undefined ? {} : { bare })}
      onChange={(event) => {
        setTyped(event.target.value);
        onChange(read(event.target.value));
      }}
    />
  );
}

interface LinesProps {
  title: string;
  what: string;
  hint: string;
  placeholder: string;
  field: string;
  draft: Draft;
}

/** A list of lines in the file, such as constraints. */
export function Lines({ title, what, hint, placeholder, field, draft }: LinesProps) {
  const value = draft.file[field];
  const lines = Array.isArray(value) ? value.map(textOf) : [];
  const write = (next: string[]) => draft.set([field], next.length === 0 ? undefined : next);
  return (
    <div className={styles.stack}>
      <p>
        <b>{title}</b> <span className={styles.soft}>{hint}</span>
      </p>
      {lines.map((line, index) => (
        <div key={index} className={styles.row}>
          <FaultAt at={`${field}[${index}]`}>
            {(error) => (
              <TextField
                bare
                label={`${what} ${index + 1}`}
                value={line}
                placeholder={placeholder}
                error={error}
                onChange={(event) => write(lines.map((one, place) => (place === index ? event.target.value : one)))}
              />
            )}
          </FaultAt>
          <Button small kind="quiet" aria-label={t`Remove ${what} ${index + 1}`} onClick={() => write(lines.filter((_, place) => place !== index))}>
            {t`Remove`}
          </Button>
        </div>
      ))}
      <div>
        <Button small onClick={() => write([...lines, ""])}>
          {t`Add ${what}`}
        </Button>
      </div>
    </div>
  );
}
