import { plural, t } from "@lingui/core/macro";
import { formatNumber } from "@/lib/format";
import styles from "./Progress.module.css";

interface Props {
  /** The numbers of a study's trials. */
  study: { finished_count: number; check_count: number };
  of: number | null | undefined;
  unit: string;
}

/** Show the progress of a search as a bar with numbers, or only the number if there is no limit. Trials of the final check are separate. */
export function Progress({ study, of, unit }: Props) {
  const { finished_count: finished, check_count: checked } = study;
  const done = finished - checked;
  const more = checked === 0 ? "" : plural(checked, { one: "+ # check", other: "+ # checks" });
  if (of === null || of === undefined) {
    return (
      <span>
        {formatNumber(done)} {unit} {more}
      </span>
    );
  }
  return (
    <span className={styles.progress}>
      <progress className={styles.bar} value={Math.min(done, of)} max={of} aria-label={t`${formatNumber(done)} of ${formatNumber(of)} ${unit}`} />
      <span className={styles.text} title={more === "" ? undefined : t`The final check has measured the best and the default in addition to the budget.`}>
        {formatNumber(done)} / {formatNumber(of)} {more}
      </span>
    </span>
  );
}
