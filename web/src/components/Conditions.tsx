import { plural, t } from "@lingui/core/macro";
import { useId, useState } from "react";
import { formatList } from "@/lib/format";
import { Button } from "./Button";
import styles from "./Conditions.module.css";
import { Problem } from "./Message";

/** The conditions on the columns of a table, which the address of the page holds. */
export interface Filtered {
  where: readonly string[];
  onWhere: (where: string[] | undefined) => void;
}

interface Props {
  where: readonly string[];
  /** The names of the columns that can be filtered by. */
  columns: readonly string[];
  /** A condition as an example, such as "threads > 8". */
  example: string;
  /** How many rows meet the filter, shown while there is one; undefined: the number is unknown. */
  matches?: number;
  /** Whether the table has other filters, too, so that the number is shown without a condition. */
  others?: boolean;
  /** The condition that does not fit the columns, if the console filters the table itself. */
  wrong?: string | null;
  /** Whether it stands among other filters, without a line below. */
  bare?: boolean;
  /** Turn a condition into the form in which it is kept, and back. */
  read?: (text: string) => string;
  write?: (condition: string) => string;
  onChange: (where: string[] | undefined) => void;
}

/** The conditions that filter a table, and a field that adds one. */
export function Conditions({ where, columns, example, matches, others = false, wrong = null, bare = false, read = trimmed, write = trimmed, onChange }: Props) {
  const [text, setText] = useState("");
  const list = useId();
  const change = (next: string[]) => onChange(next.length > 0 ? next : undefined);
  return (
    <>
      <form
        className={bare ? `${styles.conditions} ${styles.bare}` : styles.conditions}
        onSubmit={(event) => {
          event.preventDefault();
          const added = read(text);
          if (added !== "") change([...where.filter((one) => one !== added), added]);
          setText("");
        }}
      >
        {where.map((one) => (
          <Button key={one} small aria-label={t`Remove the condition ${write(one)}`} onClick={() => change(where.filter((other) => other !== one))}>
            {write(one)} <span aria-hidden="true">✕</span>
          </Button>
        ))}
        <input
          className={styles.condition}
          list={list}
          value={text}
          aria-label={t`Condition on a column`}
          title={t`Columns: ${formatList([...columns], "conjunction")}`}
          placeholder={t`Filter, such as ${example}`}
          onChange={({ target }) => setText(target.value)}
        />
        <datalist id={list}>
          {columns.map((name) => (
            <option key={name} value={`${name} `} />
          ))}
        </datalist>
        <Button type="submit" small disabled={text.trim() === ""}>
          {t`Filter`}
        </Button>
        {matches === undefined || !(where.length > 0 || others) ? null : <span role="status">{plural(matches, { one: "# row meets the filter.", other: "# rows meet the filter." })}</span>}
      </form>
      {wrong === null ? null : (
        <Problem
          error={
            new Error(
              t`“${wrong}” is not a condition on this table. Write a column, an operator (=, !=, ~ for a part of a text; <, <=, >, >= for numbers) and a value. The columns are ${formatList([...columns], "conjunction")}.`,
            )
          }
        />
      )}
    </>
  );
}

function trimmed(text: string): string {
  return text.trim();
}
