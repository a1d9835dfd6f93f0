import { plural, t } from "@lingui/core/macro";
import { useId, useState } from "react";
import { Button } from "@/components/Button";
import { conditionOf, conditionText } from "./conditions";
import styles from "./TrialTable.module.css";

interface Props {
  where: readonly string[];
  /** The columns that can be filtered by, by the names that people write. */
  columns: ReadonlyMap<string, string>;
  /** The number of trials that meet the whole filter; null: there is no filter, or it is unknown. */
  matches: number | null;
  onChange: (where: string[]) => void;
}

/** The conditions that filter the table, and a field that adds one. */
export function Conditions({ where, columns, matches, onChange }: Props) {
  const [text, setText] = useState("");
  const list = useId();
  return (
    <form
      className={styles.conditions}
      onSubmit={(event) => {
        event.preventDefault();
        const added = conditionOf(text, columns);
        if (added !== "") onChange([...where.filter((one) => one !== added), added]);
        setText("");
      }}
    >
      {where.map((one) => (
        <Button key={one} small aria-label={t`Remove the condition ${conditionText(one)}`} onClick={() => onChange(where.filter((other) => other !== one))}>
          {conditionText(one)} <span aria-hidden="true">✕</span>
        </Button>
      ))}
      <input className={styles.condition} list={list} value={text} aria-label={t`Condition on a column`} placeholder={t`Filter, such as threads > 8`} onChange={({ target }) => setText(target.value)} />
      <datalist id={list}>
        {[...columns.keys()].map((name) => (
          <option key={name} value={`${name} `} />
        ))}
      </datalist>
      <Button type="submit" small disabled={text.trim() === ""}>
        {t`Filter`}
      </Button>
      {matches === null ? null : <span role="status">{plural(matches, { one: "# trial meets the filter.", other: "# trials meet the filter." })}</span>}
    </form>
  );
}
