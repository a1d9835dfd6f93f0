import { t } from "@lingui/core/macro";
import { Ago } from "@/components/Time";
import type { Study } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { earlierTrialsText } from "@/lib/verdicts";
import styles from "./SpaceEdits.module.css";

/** Show the edits of a study's space, newest first, with how the trials of that time count since. */
export function SpaceEdits({ edits }: { edits: Study["space_edits"] }) {
  if (edits.length === 0) return null;
  return (
    <details open={edits.length <= 3}>
      <summary>{t`Edits of the search space`}</summary>
      <ul className={styles.edits}>
        {[...edits].reverse().map((edit) => (
          <li key={edit.version}>
            <b>{describe(edit)}</b>{" "}
            <span className={styles.soft}>
              <Ago at={edit.at} /> {t`by ${edit.actor}`}
            </span>
            <br />
            {earlierTrialsText(edit.trials)}
          </li>
        ))}
      </ul>
    </details>
  );
}

function describe({ added, removed, fixed, freed }: Study["space_edits"][number]): string {
  const values = (given: Record<string, unknown>) => Object.entries(given).map(([name, value]) => `${name} = ${formatValue(value as string)}`);
  const parts = [
    ...added.map((name) => t`added ${name}`),
    ...values(removed).map((text) => t`removed ${text}`),
    ...values(fixed).map((text) => t`fixed ${text}`),
    ...freed.map((name) => t`freed ${name}`),
  ];
  return parts.join(", ");
}
