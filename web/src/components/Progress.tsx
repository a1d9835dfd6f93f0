import { plural, t } from "@lingui/core/macro";
import { formatNumber } from "@/lib/format";
import styles from "./Progress.module.css";

interface Props {
  /** The numbers of a study's trials. `check_limit`: the most that `check_count` reaches while a check is under way. */
  study: { finished_count: number; search_count: number; check_count: number; check_limit?: number | null };
  of: number | null | undefined;
  unit: string;
}

/** Show the progress of a search as a bar with numbers, or only the number if there is no limit. Trials of the final check are separate. */
export function Progress({ study, of, unit }: Props) {
  const { finished_count: finished, search_count: done, check_count: checked, check_limit: limit = null } = study;
  const check = checkText(checked, limit);
  // Added trials, and those that an edit of the space has withdrawn.
  const outside = Math.max(finished - done - checked, 0);
  const more = `${check}${outside === 0 ? "" : t`, ${formatNumber(outside)} outside the budget`}`;
  if (of === null || of === undefined) {
    return (
      <span>
        {formatNumber(done)} {unit}
        {more}
      </span>
    );
  }
  return (
    <span className={styles.progress}>
      <progress className={styles.bar} value={Math.min(done, of)} max={of} aria-label={t`${formatNumber(done)} of ${formatNumber(of)} ${unit}`} />
      <span className={styles.text} title={check === "" ? undefined : t`The final check has measured the best and the default in addition to the budget.`}>
        <span className={styles.done}>{t`${formatNumber(done)} of ${formatNumber(of)}`}</span>
        {more}
      </span>
    </span>
  );
}

function checkText(checked: number, limit: number | null): string {
  if (limit !== null) return t`, then check ${formatNumber(checked)} of at most ${formatNumber(limit)}`;
  return checked === 0 ? "" : plural(checked, { one: ", then # check", other: ", then # checks" });
}
