import type { Analysis, ObjectiveProgress, Study } from "@/lib/api/client";
import { formatFactor, formatGain, formatMetric, formatNumber, unitOf } from "@/lib/format";
import styles from "./Gain.module.css";

/** How much better than the default the best is, for each objective; the final check's verdict once there is one. */
export function Gain({ analysis, study }: { analysis: Analysis; study: Study }) {
  return (
    <div className={styles.gains}>
      <Verdict study={study} />
      {analysis.objectives.map((objective) => (
        <Objective key={objective.metric} objective={objective} />
      ))}
      <Expected analysis={analysis} />
      <Known analysis={analysis} />
      <Basis analysis={analysis} />
    </div>
  );
}

function Objective({ objective }: { objective: ObjectiveProgress }) {
  const { metric, goal, gain, gain_low: low, gain_high: high, best, noise, default: start } = objective;
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
      {low === null || high === null ? null : (
        <p className={styles.basis}>
          95 %: {formatGain(low)} to {formatGain(high)}
        </p>
      )}
      <dl className={styles.values}>
        <div>
          <dt>Default</dt>
          <dd>{start === null ? "not measured" : formatMetric(start, unit)}</dd>
        </div>
        <div>
          <dt>Best</dt>
          <dd>{best === null ? "none yet" : formatMetric(best, unit)}</dd>
        </div>
        {noise === null ? null : (
          <div>
            <dt>Noise of one run</dt>
            <dd>
              ±{formatMetric(noise, unit, 2)}
              {best === null || best === 0 ? "" : ` (${formatGain(noise / Math.abs(best))})`}
            </dd>
          </div>
        )}
      </dl>
    </div>
  );
}

function Verdict({ study: { verdict, search_end_reason: ended, state } }: { study: Study }) {
  if (verdict !== null) {
    return (
      <p className={`${styles.verdict} ${verdict.low > 0 ? styles.good : ""}`}>
        Final check, {times(verdict.trials)}: <b>{verdict.text}</b>
      </p>
    );
  }
  if (ended === "" || state !== "ACTIVE") return null;
  return <p className={styles.verdict}>The final check is under way: the best and the default are measured in turns.</p>;
}

/** How much of the space was looked at. */
function Known({ analysis: { configurations, space_size: size } }: { analysis: Analysis }) {
  if (configurations === 0) return null;
  return (
    <p className={styles.basis}>
      {configurations === 1 ? "1 configuration was" : `${formatNumber(configurations)} different configurations were`} measured
      {size === null ? ", of a continuum" : `: ${formatGain(configurations / size)} of the ${formatNumber(size)} of the space`}.
    </p>
  );
}

/** What to expect of the best, without the luck of single runs. */
function Expected({ analysis: { recommendation, objectives } }: { analysis: Analysis }) {
  const [objective] = objectives;
  if (recommendation === null || recommendation.low === null || recommendation.high === null || objective === undefined) return null;
  if (recommendation.low === recommendation.high) return null;
  const unit = unitOf(objective);
  return (
    <p className={styles.basis}>
      Expected of the best: {formatMetric(recommendation.value, unit)} (95 %: {formatMetric(recommendation.low, unit)} to{" "}
      {formatMetric(recommendation.high, unit)}).
    </p>
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
