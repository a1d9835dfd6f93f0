import { t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { TextField } from "@/components/Field";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";

interface Props {
  title: string;
  what: string;
  hint: string;
  placeholder: string;
  field: string;
  draft: Draft;
}

/** A list of lines in the file, such as constraints. */
export function Lines({ title, what, hint, placeholder, field, draft }: Props) {
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
