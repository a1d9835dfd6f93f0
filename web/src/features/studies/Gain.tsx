import type { Analysis, ObjectiveProgress } from "@/lib/api/client";
import { formatFactor, formatGain, formatMetric, unitOf } from "@/lib/format";
import styles from "./Gain.module.css";

/** How much better than the default the best is, for each objective. */
export function Gain({ analysis }: { analysis: Analysis }) {
  return (
    <div className={styles.gains}>
      {analysis.objectives.map((objective) => (
        <Objective key={objective.metric} objective={objective} />
      ))}
      <Basis analysis={analysis} />
    </div>
  );
}

function Objective({ objective }: { objective: ObjectiveProgress }) {
  const { metric, goal, gain, best, default: start } = objective;
  const unit = unitOf(objective);
  const factor = formatFactor(objective);
  const tone = gain === null ? "" : gain > 0 ? styles.good : gain < 0 ? styles.bad : "";
  return (
    <div className={styles.objective}>
      <p className={styles.metric}>
        {metric}, {goal}d
      </p>
      <p className={`${styles.gain} ${tone}`}>
        {gain === null ? "—" : gain === 0 ? "No gain yet" : formatGain(Math.abs(gain))}
        {gain === null || gain === 0 ? null : <span className={styles.word}> {gain > 0 ? "better" : "worse"}</span>}{" "}
        {factor === null || gain === null || gain <= 0 ? null : <span className={styles.factor}>{factor}</span>}
      </p>
      <dl className={styles.values}>
        <div>
          <dt>Default</dt>
          <dd>{start === null ? "not measured" : formatMetric(start, unit)}</dd>
        </div>
        <div>
          <dt>Best</dt>
          <dd>{best === null ? "none yet" : formatMetric(best, unit)}</dd>
        </div>
      </dl>
    </div>
  );
}

/** How many measurements stand behind the numbers: a single one of a noisy system is no proof. */
function Basis({ analysis }: { analysis: Analysis }) {
  if (analysis.best.length > 1) return <p className={styles.basis}>Each by the trade-off that is best in it.</p>;
  if (analysis.default === null) return null;
  const [first] = analysis.best;
  if (first === undefined) return null;
  if (first.numbers[0] === analysis.default.numbers[0]) return <p className={styles.basis}>The default is the best so far.</p>;
  return (
    <p className={styles.basis}>
      From {times(analysis.default.numbers.length)} of the default and {times(first.numbers.length)} of the best.
    </p>
  );
}

function times(count: number): string {
  return count === 1 ? "1 measurement" : `${count} measurements`;
}
