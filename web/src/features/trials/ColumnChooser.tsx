import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { Popover } from "@/components/Popover";
import type { StudySpec, Trial } from "@/lib/api/client";
import { titled, type Units } from "@/lib/space";
import { columnsOf, DIFFERENCES, type Shown } from "./columns";
import styles from "./TrialTable.module.css";

/** A menu that chooses the columns of the table of trials. */
export function ColumnChooser({ spec, trials, shown, onChange }: { spec: StudySpec; trials: Trial[]; shown: Shown[]; onChange: (shown: Shown[]) => void }) {
  const all = columnsOf(spec, trials);
  return (
    <Popover label={t`Columns`} trigger={<Button small>{t`Columns`}</Button>}>
      <ul className={styles.columns}>
        {all.map((column) => (
          <li key={column}>
            <label>
              <input
                type="checkbox"
                checked={shown.includes(column)}
                onChange={({ target: { checked } }) => onChange(all.filter((one) => (one === column ? checked : shown.includes(one))))}
              />
              {titleOf(column)}
              {column.startsWith("param:") ? <span className={styles.origin}>{t`parameter`}</span> : null}
            </label>
          </li>
        ))}
      </ul>
    </Popover>
  );
}

const TITLES: Partial<Record<Shown, MessageDescriptor>> = {
  agent: msg`Measured by`,
  duration: msg`Duration`,
  [DIFFERENCES]: msg`Differences from the default`,
  origin: msg`Origin`,
  attempt: msg`Attempt`,
  started: msg`Started`,
  reason: msg`Reason`,
};

/** Return the title of a column: the name of its metric, that of its parameter with the unit, or a text. */
export function titleOf(column: Shown, units: Units = {}): string {
  const title = TITLES[column];
  if (title !== undefined) return i18n._(title);
  const name = column.slice(column.indexOf(":") + 1);
  return titled(name, column.startsWith("param:") ? units[name] : undefined);
}
