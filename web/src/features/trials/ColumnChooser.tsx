import { t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { Popover } from "@/components/Popover";
import type { StudySpec, Trial } from "@/lib/api/client";
import { columnsOf, type Shown } from "./columns";
import { titleOf } from "./columnTitles";
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
