import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { BadgeCheck } from "lucide-react";
import { useContext, type ReactNode } from "react";
import { OnPaper } from "@/components/Chart";
import { IntervalBar } from "@/components/IntervalBar";
import type { Analysis, Measured, ObjectiveProgress, Study } from "@/lib/api/client";
import { isSame } from "@/lib/space";
import { formatFactor, formatGain, formatMetric, formatNumber, formatPercent, unitOf } from "@/lib/format";
import { adviceText, changesText, conditionText, verdictText } from "@/lib/verdicts";
import { gainsOf } from "./points";
import styles from "./Gain.module.css";

interface Props {
  analysis: Analysis;
  study: Study;
  /** The member of the Pareto front whose gains are shown; undefined: the one to which the numbers of the analysis belong. */
  point?: Measured | undefined;
  /** What the user can do next, below the verdict. */
  children?: ReactNode;
}

/** Show the gain of the best over the default for each objective, its interval, and the verdict. Only a proven gain is green. What it is based on is folded. */
export function Gain({ analysis, study, point, children }: Props) {
  const onPaper = useContext(OnPaper);
  const [first] = analysis.best;
  const objectives = point === undefined ? analysis.objectives : gainsOf(analysis, point, study.spec.objectives);
  return (
    <div className={styles.gains}>
      <Headlines analysis={analysis} study={study} objectives={objectives} />
      <Verdict analysis={analysis} study={study} />
      <Conditions analysis={analysis} />
      <Compared analysis={analysis} />
      {/* The next steps say so too. */}
      {children === undefined && analysis.verdict?.compared == null && analysis.best.length === 1 && analysis.default !== null && first?.numbers[0] === analysis.default.numbers[0] ? (
        <p className={styles.basis}>{t`The default is the best so far.`}</p>
      ) : null}
      {children}
      <details className={styles.known} open={onPaper}>
        <summary>{t`How is this known?`}</summary>
        <Basis analysis={analysis} point={point} />
        {objectives.map((objective) => (
          <Estimate key={objective.metric} objective={objective} />
        ))}
        <Expected analysis={analysis} />
        <Doubtful analysis={analysis} />
        <Known analysis={analysis} />
        {study.spec.noisy && analysis.recommendation !== null ? (
          <p>{t`Runs are noisy. The best configuration is chosen by its replicates and similar configurations, not by the best single run.`}</p>
        ) : null}
      </details>
    </div>
  );
}

function Headlines({ analysis, study, objectives }: { analysis: Analysis; study: Study; objectives: readonly ObjectiveProgress[] }) {
  const open = openText(analysis);
  return objectives.map((objective) => (
    <Objective key={objective.metric} objective={objective} level={analysis.verdict?.level} open={open} isEstimated={isEstimated(objective, analysis, study.spec.noisy ?? true)} />
  ));
}

type Level = NonNullable<Analysis["verdict"]>["level"];

/** Say why there is no gain to show after the final check; null if there is one, or may be. */
function openText({ verdict, pareto_verdict: several }: Analysis): string | null {
  if (several?.level === "no measurable gain" && several.gain === null) return t`Breaks a constraint`;
  if (!verdict?.compared) return null;
  switch (verdict.code) {
    case "breaks_constraint":
      return t`Breaks a constraint`;
    case "worse":
      return t`The default is better`;
    case "fails":
      return t`The best configuration fails`;
    case "unstable":
      return t`Unstable on some nodes`;
    case "check_failed":
      return t`The final check has failed`;
    default:
      return t`No measurable gain`;
  }
}

/** Return whether an objective's gain is not yet known, but estimated. With several objectives it is before the final check. */
function isEstimated({ gain_low: low }: ObjectiveProgress, { verdict }: Analysis, isNoisy: boolean): boolean {
  return verdict === null ? isNoisy && low === null : verdict.level === "not yet known";
}

interface ObjectiveProps {
  objective: ObjectiveProgress;
  level: Level | undefined;
  /** Why there is no gain to show. */
  open: string | null;
  isEstimated: boolean;
}

function Objective({ objective, level, open, isEstimated: estimated }: ObjectiveProps) {
  const { metric, goal, gain, gain_low: low, gain_high: high, best, default: start } = objective;
  const unit = unitOf(objective);
  // Several objectives have no level of their own.
  const isOpen = level === undefined ? low !== null && high !== null && low < high && low <= 0 && high >= 0 : level === "no measurable gain" && gain !== 0;
  const factor = formatFactor(objective);
  const tone = gain === null ? "" : gain > 0 && level === "proven" ? styles.good : gain < 0 ? styles.bad : "";
  return (
    <div className={styles.objective}>
      <p className={styles.metric}>{goal === "minimize" ? t`${metric}, minimized` : t`${metric}, maximized`}</p>
      {isOpen || open !== null ? (
        <p className={styles.gain}>{open ?? t`No measurable gain`}</p>
      ) : (
        <p className={`${styles.gain} ${tone}`}>
          {gain === null ? "—" : gain === 0 ? t`No gain yet` : formatGain(Math.abs(gain))}
          {gain === null || gain === 0 ? null : <span className={styles.word}> {wordFor(gain, estimated)}</span>}{" "}
          {factor === null || gain === null || gain <= 0 ? null : <span className={styles.factor}>{factor}</span>}
        </p>
      )}
      {gain === null || open !== null || (gain === 0 && low === null) ? null : <IntervalBar gain={gain} low={low} high={high} isProven={level === undefined ? low !== null && low > 0 : level === "proven"} />}
      <dl className={styles.values}>
        <div>
          <dt>{t`Default`}</dt>
          <dd>{start === null ? t`not measured` : formatMetric(start, unit)}</dd>
        </div>
        <div>
          <dt>{t`Best`}</dt>
          <dd>{best === null ? t`none yet` : formatMetric(best, unit)}</dd>
        </div>
      </dl>
    </div>
  );
}

function wordFor(gain: number, estimated: boolean): string {
  if (estimated) return gain > 0 ? t`better, estimated` : t`worse, estimated`;
  return gain > 0 ? t`better` : t`worse`;
}

/** Show under which conditions the numbers hold, and how a disturbed measurement can be better. */
function Conditions({ analysis }: { analysis: Analysis }) {
  const { verdict, pareto_verdict: several } = analysis;
  const advised = verdict ?? analysis;
  const conditions = (verdict ?? several)?.conditions ?? [];
  if (conditions.length === 0 && advised.advice === "") return null;
  return (
    <ul className={styles.conditions} aria-label={t`Conditions`}>
      {conditions.map((condition) => (
        <li key={condition.text} className={["load", "injected", "unstable", "fewer_nodes"].includes(condition.code) ? styles.warn : undefined}>
          {conditionText(condition)}
        </li>
      ))}
      {advised.advice === "" ? null : <li>{adviceText(advised)}</li>}
    </ul>
  );
}

/** Show the configuration that the final check has compared with the default, and that is not recommended. */
function Compared({ analysis: { verdict, objectives, default_params: standard } }: { analysis: Analysis }) {
  const [objective] = objectives;
  if (!verdict?.compared || objective === undefined) return null;
  const { configuration, value, runs } = verdict.compared;
  const changes = changesText(configuration, standard);
  return (
    <p className={styles.basis}>
      {t`The default is recommended.`}{" "}
      {value === null ? t`Compared with it: ${changes}.` : t`Compared with it: ${changes}, ${formatMetric(value, unitOf(objective))} in ${times(runs)}.`}
    </p>
  );
}

/** Show the noise of single runs. */
function Estimate({ objective }: { objective: ObjectiveProgress }) {
  const { metric, best, noise } = objective;
  const unit = unitOf(objective);
  const share = noise === null || best === null || best === 0 ? "" : ` (${formatPercent(noise / Math.abs(best))})`;
  return (
    noise === null ? null : <p>{t`Noise of one measurement of ${metric}: ±${formatMetric(noise, unit, 2)}${share}.`}</p>
  );
}

/** Show how many timings are doubtful. */
function Doubtful({ analysis: { verdict, pareto_verdict: several } }: { analysis: Analysis }) {
  const { measured, doubtful } = verdict ?? several ?? { measured: 0, doubtful: 0 };
  if (doubtful === 0) return null;
  return (
    <p>
      {t`${doubtful} of ${plural(measured, { one: "# timing is", other: "# timings are" })} doubtful, for example because other processes used the machine. They count only for configurations without other measurements.`}
    </p>
  );
}

function Verdict({ analysis, study: { active_count: running, search_end_reason: ended, spec, state } }: { analysis: Analysis; study: Study }) {
  const verdict = analysis.verdict ?? analysis.pareto_verdict;
  const isSeveral = analysis.objectives.length > 1;
  return (
    <>
      {verdict === null ? null : (
        <p className={`${styles.verdict} ${verdict.level === "proven" ? styles.good : ""}`}>
          {verdict.level === "proven" ? <BadgeCheck /> : null}
          {verdict.trials === 0 ? (
            <span>{verdictText(verdict)}</span>
          ) : (
            <span>
              <Trans>
                Final check, {times(verdict.trials)}: {verdictText(verdict)}
              </Trans>
            </span>
          )}
        </p>
      )}
      {ended === "" || state !== "ACTIVE" ? null : (
        <p className={styles.verdict}>{isSeveral
            ? t`The final check is running. It measures members of the Pareto front and the default alternately.`
            : verdict?.level === "proven" && verdict.trials > 0
              ? t`The final check is running. It measures which of the changes carry the gain.`
              : t`The final check is running. It measures the best configuration and the default alternately.`}
          {spec.execution || running > 0 ? null : <> {t`It waits for your script to ask for the next trial. Start the script again if it has ended.`}</>}
        </p>
      )}
      {verdict === null || verdict.trials === 0 || state !== "ACTIVE" ? null : (
        <p className={styles.basis}>{t`The study continues. The verdict is that of its earlier final check until the next one is over.`}</p>
      )}
    </>
  );
}

/** Show how much of the space was measured. */
function Known({ analysis: { configurations, space_size: size } }: { analysis: Analysis }) {
  if (configurations === 0) return null;
  return (
    <p>
      {size === null
        ? plural(configurations, { one: "# configuration was measured in a continuous space.", other: "# different configurations were measured in a continuous space." })
        : t`${plural(configurations, { one: "# configuration was measured", other: "# different configurations were measured" })}: ${share(configurations / size)} of the ${formatNumber(size)} in the space.`}
    </p>
  );
}

/** Format a share. A small one is never shown as zero. */
function share(part: number): string {
  return part < 0.0001 ? t`less than ${formatPercent(0.0001)}` : formatPercent(part);
}

/** Show the expected value of the best configuration, without the noise of single runs. */
function Expected({ analysis: { recommendation, objectives } }: { analysis: Analysis }) {
  const [objective] = objectives;
  if (recommendation === null || recommendation.low === null || recommendation.high === null || objective === undefined) return null;
  if (recommendation.low === recommendation.high) return null;
  const unit = unitOf(objective);
  return (
    <p>
      {t`Expected value of the best: ${formatMetric(recommendation.value, unit)} (95 %: ${formatMetric(recommendation.low, unit)} to ${formatMetric(recommendation.high, unit)}).`}
    </p>
  );
}

/** Show how many measurements the numbers are based on. */
function Basis({ analysis, point }: { analysis: Analysis; point: Measured | undefined }) {
  if (analysis.objectives.length > 1) {
    const own = analysis.best.find(({ params }) => isSame(params, analysis.configuration));
    const shown = point ?? own;
    if (shown === undefined) return null;
    const number = shown.numbers[0] ?? 0;
    return <p>{shown === own ? t`All numbers belong to one trade-off, that of trial ${number}: its smallest gain is the largest.` : t`All numbers belong to one trade-off, that of trial ${number}.`}</p>;
  }
  if (analysis.default === null) return null;
  const [first] = analysis.best;
  if (first === undefined) return null;
  return <p>{t`Based on ${times(analysis.default.numbers.length)} of the default and ${times(first.numbers.length)} of the best.`}</p>;
}

function times(count: number): string {
  return plural(count, { one: "# measurement", other: "# measurements" });
}
