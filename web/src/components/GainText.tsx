import { plural, t } from "@lingui/core/macro";
import type { SummarisedObjective } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatList, levelText } from "@/lib/format";
import { listedLevelText } from "@/lib/verdicts";
import styles from "./GainText.module.css";

/** Show a gain in words, with the level of its verdict, its interval and what has disturbed it. Only a proven gain is green. */
export function GainText({ objective }: { objective: SummarisedObjective }) {
  const text = wordsFor(objective);
  if (text === null) return null;
  const interval = formatGainInterval(objective);
  return (
    <span className={objective.level === "proven" ? styles.proven : styles.soft}>
      {text}
      {interval === null ? null : <span className={`${styles.soft} ${styles.interval}`}> (95 %: {interval})</span>}
    </span>
  );
}

/** A figure that is not known to be a gain is not called one. */
function wordsFor(objective: SummarisedObjective): string | null {
  const { gain, level } = objective;
  if (gain === null) return level ? levelText(level) : null;
  if (level === "no measurable gain") return levelText(level);
  const size = gain > 0 ? t`${formatGain(gain)} better` : gain === 0 ? t`no gain yet` : t`${formatGain(-gain)} worse`;
  if (level === "not yet known") return t`${levelText(level)}, estimated ${size}`;
  return level ? `${listedLevelText(objective)}: ${size}` : size;
}

/** Show how many configurations are on the front of several objectives, and the level of their verdict. No single gain belongs to all of them. */
export function FrontText({ objectives }: { objectives: readonly SummarisedObjective[] }) {
  const [first] = objectives;
  const count = first?.front ?? null;
  const names = formatList(
    objectives.map(({ metric }) => metric),
    "conjunction",
  );
  return (
    <span>
      {count === null ? t`several objectives` : plural(count, { one: "# on the front", other: "# on the front" })}{" "}
      <span className={first?.level === "proven" ? styles.proven : styles.soft}>{first?.level ? t`of ${names}, ${levelText(first.level)}` : t`of ${names}`}</span>
    </span>
  );
}
