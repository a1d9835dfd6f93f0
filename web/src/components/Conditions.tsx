import { plural, t } from "@lingui/core/macro";
import { X } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { ApiError } from "@/lib/api/client";
import { parse } from "@/lib/conditions";
import { formatList } from "@/lib/format";
import { nearest } from "@/lib/words";
import { Button } from "./Button";
import styles from "./Conditions.module.css";

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
  /** Why the service has refused the rows, if it filters the table. An error about a condition is shown here, and is none of the table. */
  error?: Error | null;
  /** Whether it stands among other filters, without a line below. */
  bare?: boolean;
  /** Turn a condition into the form in which it is kept, and back. */
  read?: (text: string) => string;
  write?: (condition: string) => string;
  onChange: (where: string[] | undefined) => void;
}

/** The conditions that filter a table, and a field that adds one. */
export function Conditions({ where, columns, example, matches, others = false, wrong = null, error = null, bare = false, read = trimmed, write = trimmed, onChange }: Props) {
  const [text, setText] = useState("");
  // A condition that cannot be read stays in the field, with the reason.
  const [refused, refuse] = useState<string | null>(null);
  const list = useId();
  const reason = useId();
  const change = (next: string[]) => onChange(next.length > 0 ? next : undefined);
  const refusal = refusalOf(error) ?? (wrong === null ? null : { condition: wrong, reason: noCondition(write(wrong), columns) });
  const { condition, reason: why } = refusal ?? {};
  // A wrong condition goes back to the field, with the reason.
  const [returns, setReturns] = useState(false);
  const isWrong = condition !== undefined && where.includes(condition);
  if (isWrong !== returns) {
    setReturns(isWrong);
    if (isWrong) {
      setText(write(condition));
      refuse(why ?? null);
    }
  }
  useEffect(() => {
    const rest = where.filter((one) => one !== condition);
    if (rest.length < where.length) onChange(rest.length > 0 ? rest : undefined);
  }, [condition, where, onChange]);
  return (
    <>
      <form
        className={bare ? `${styles.conditions} ${styles.bare}` : styles.conditions}
        onSubmit={(event) => {
          event.preventDefault();
          const fault = faultOf(text, columns);
          refuse(fault);
          if (fault !== null) return;
          const added = read(text);
          if (added !== "") change([...where.filter((one) => one !== added), added]);
          setText("");
        }}
      >
        {where.map((one) => (
          <Button key={one} small aria-label={t`Remove the condition ${write(one)}`} onClick={() => change(where.filter((other) => other !== one))}>
            {write(one)} <X />
          </Button>
        ))}
        <input
          className={styles.condition}
          list={list}
          value={text}
          aria-label={t`Condition on a column`}
          title={t`Columns: ${formatList([...columns], "conjunction")}`}
          placeholder={t`Filter, such as ${example}`}
          aria-invalid={refused === null ? undefined : true}
          aria-describedby={refused === null ? undefined : reason}
          onChange={({ target }) => {
            setText(target.value);
            refuse(null);
          }}
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
      {refused === null ? null : (
        <p id={reason} role="alert" className={styles.refused}>
          {refused}
        </p>
      )}
    </>
  );
}

/** Return what is wrong with a condition that a user has typed, or null. The service checks the value. */
export function faultOf(text: string, columns: readonly string[]): string | null {
  if (text.trim() === "") return null;
  const found = parse(text);
  if (found === null) return noCondition(text, columns);
  const { column } = found;
  if (columns.includes(column) || /^(metric|param):/.test(column)) return null;
  const near = nearest(column, columns);
  const all = formatList([...columns], "conjunction");
  return near === undefined ? t`There is no column “${column}”. The columns are ${all}.` : t`There is no column “${column}”. Did you mean “${near}”? The columns are ${all}.`;
}

function noCondition(text: string, columns: readonly string[]): string {
  const all = formatList([...columns], "conjunction");
  return t`“${text}” is not a condition on this table. Write a column, an operator (=, !=, ~ for a part of a text; <, <=, >, >= for numbers) and a value. The columns are ${all}.`;
}

/** Return the condition that the service has refused, and why; null for an error about something else. */
export function refusalOf(error: Error | null): { condition: string; reason: string } | null {
  if (!(error instanceof ApiError) || error.data.field !== "where" || typeof error.data.value !== "string") return null;
  return { condition: error.data.value, reason: error.message };
}

function trimmed(text: string): string {
  return text.trim();
}
