import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useMemo, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { Problem as Refusal } from "@/components/Message";
import YamlEditor, { type EditorHandle, type Marked } from "@/components/YamlEditor";
import type { ComponentCheck } from "@/lib/api/client";
import { useSettled } from "@/lib/clock";
import { checkQuery, useWriteComponent } from "./api";
import styles from "./WriteComponent.module.css";

interface Props {
  /** The component that is edited; null: a new component. */
  name: string | null;
  initial: string;
  /** The number of the version before this text; 0 for a new component. */
  after: number;
  onSaved: (name: string) => void;
  /** Called with whether there are unsaved changes. */
  onChange: (unsaved: boolean) => void;
}

const NONE: ComponentCheck["problems"] = [];
const NO_WORDS = {};

/** An editor for a component's file. While the user types, the service checks the text by the agent's own rules. */
export function WriteComponent({ name, initial, after, onSaved, onChange }: Props) {
  const [text, setText] = useState(initial);
  const settled = useSettled(text, 300);
  const check = useQuery(checkQuery(settled));
  const write = useWriteComponent(after);
  const editor = useRef<EditorHandle>(null);
  const id = useId();
  const isCurrent = settled === text && !check.isPlaceholderData && check.data !== undefined;
  const problems = check.data?.problems ?? NONE;
  const marked = useMemo(() => problems.map(markOf), [problems]);
  const renamed = isCurrent && problems.length === 0 && name !== null && check.data.name !== name;
  return (
    <div className={styles.layout}>
      <div>
        <YamlEditor
          handle={editor}
          text={text}
          label={t`Component file`}
          describedBy={`${id}-state`}
          problems={marked}
          words={check.data?.words ?? NO_WORDS}
          onChange={(next) => {
            setText(next);
            onChange(next !== initial);
          }}
        />
        <p className={styles.hint}>{t`Ctrl-Space lists the words that are allowed at the cursor.`}</p>
      </div>
      <div className={styles.aside}>
        <p id={`${id}-state`} aria-live="polite" className={isCurrent && problems.length === 0 ? styles.good : undefined}>
          {check.error !== null ? check.error.message : check.data === undefined ? t`Checking …` : verdict(problems.length)}
        </p>
        {problems.length === 0 ? null : (
          <ul className={styles.problems} aria-label={t`Problems`}>
            {problems.map((problem) => (
              <li key={`${problem.line} ${problem.column} ${problem.field} ${problem.message}`}>
                <button type="button" className={styles.problem} onClick={() => editor.current?.show(markOf(problem))}>
                  {t`line ${problem.line},`} <span className={styles.field}>{problem.field}</span>
                  <br />
                  {problem.message}
                </button>
              </li>
            ))}
          </ul>
        )}
        {check.data === undefined || problems.length > 0 ? null : <Summary check={check.data} />}
        {renamed ? <p>{t`The name has changed. Saving creates the component ${check.data.name}, not a new version of ${name}.`}</p> : null}
        {write.error === null ? null : <Refusal error={write.error} />}
        <div>
          <Button
            kind="primary"
            disabled={!isCurrent || problems.length > 0 || write.isPending}
            onClick={() => write.mutate(text, { onSuccess: (file) => onSaved(file.name) })}
          >
            {t`Save version`}
          </Button>
        </div>
        <p className={styles.hint}>{t`Saving runs nothing. The administrator of a cluster reviews the file and installs it.`}</p>
      </div>
    </div>
  );
}

function markOf({ field, message, ...place }: ComponentCheck["problems"][number]): Marked {
  return { ...place, message: `${field}: ${message}` };
}

function verdict(problems: number): string {
  return problems === 0 ? t`No problems` : plural(problems, { one: "# problem", other: "# problems" });
}

function Summary({ check }: { check: ComponentCheck }) {
  return (
    <dl className={styles.facts}>
      <div>
        <dt>{t`Parameters`}</dt>
        <dd>{check.parameters.join(", ") || t`none`}</dd>
      </div>
      <div>
        <dt>{t`Applications`}</dt>
        <dd>{check.applications.join(", ")}</dd>
      </div>
      <div>
        <dt>{t`Metrics`}</dt>
        <dd>{check.metrics.join(", ")}</dd>
      </div>
      {check.unseen.length === 0 ? null : (
        <div>
          <dt>{t`Other files needed on the cluster (not checked here)`}</dt>
          <dd>{check.unseen.join(", ")}</dd>
        </div>
      )}
    </dl>
  );
}
