import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Button, CopyButton } from "@/components/Button";
import { Code, Problem } from "@/components/Message";
import type { Configuration, StudySpec, Trial, TrialDetail } from "@/lib/api/client";
import { formatDuration, formatMetric, formatNumber, formatTime, formatValue, unitOf } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { brokenText } from "./Limits";
import { trialQuery, useStopTrial } from "./api";
import { namesOf } from "./columns";
import { interferenceText } from "./interference";
import { unitsOf } from "@/lib/space";
import styles from "./TrialDetails.module.css";

interface Props {
  study: string;
  spec: StudySpec;
  trial: Trial;
  standard: Configuration | undefined;
  mayStop: boolean;
}

/** Show a summary of a trial. */
export function TrialDetails({ study, spec, trial, standard, mayStop }: Props) {
  const detail = useQuery(trialQuery(study, trial.number, trial.revision));
  const stop = useStopTrial(study, trial.number);
  const open = trial.state === "ACTIVE" || trial.state === "REQUESTED";
  const interference = trial.interference === null ? "" : interferenceText(trial.interference);
  const units = unitsOf(spec.space.parameters);
  return (
    <div className={styles.details}>
      {trial.reason === "" ? null : <p className={styles.reason}>{reasonText(trial.reason, trial.reason_data)}</p>}
      {trial.repeat === "" ? null : <p className={styles.reason}>{reasonText(trial.repeat, trial.repeat_data)}</p>}
      {trial.breaks === null ? null : <p className={styles.reason}>{t`Breaks a constraint: ${trial.breaks.map((text) => brokenText(text, trial.metrics ?? {})).join("; ")}`}</p>}
      {trial.round === null ? null : <p className={styles.reason}>{t`Round ${trial.round} of the final check`}</p>}
      {trial.doubt === "" ? null : <p className={styles.reason}>{t`The timing is doubtful: ${trial.doubt}.`}</p>}
      {interference === "" ? null : <p className={styles.reason}>{interference}</p>}
      <div className={styles.columns}>
        <section>
          <h3>{t`Configuration`}</h3>
          <dl className={styles.pairs}>
            {namesOf(spec, [trial])
              .filter((name) => name in trial.params)
              .map((name) => (
                <div key={name} className={standard !== undefined && trial.params[name] !== standard[name] ? styles.differs : undefined}>
                  <dt>{name}</dt>
                  <dd>{formatValue(trial.params[name], units[name])}</dd>
                </div>
              ))}
          </dl>
          <CopyButton label={t`Copy as JSON`} text={JSON.stringify(trial.params, null, 2)} />
        </section>
        <section>
          <h3>{t`Metrics and times`}</h3>
          <dl className={styles.pairs}>
            {Object.entries(trial.metrics ?? {}).map(([metric, value]) => (
              <div key={metric}>
                <dt>{metric}</dt>
                <dd>{formatMetric(value, unitOf(spec.objectives.find((objective) => objective.metric === metric) ?? { metric }), 6)}</dd>
              </div>
            ))}
            {trial.node === "" ? null : (
              <div>
                <dt>{t`node`}</dt>
                <dd>{trial.node}</dd>
              </div>
            )}
            <Moment name={t`requested`} at={trial.created_at} />
            <Moment name={t`started`} at={trial.started_at} />
            <Moment name={t`ended`} at={trial.finished_at} />
            {trial.attempt > 1 ? (
              <div>
                <dt>{t`attempt`}</dt>
                <dd>{trial.attempt}</dd>
              </div>
            ) : null}
          </dl>
          {open && mayStop ? (
            <Button small kind="danger" disabled={stop.isPending} onClick={() => stop.mutate()}>
              {t`Stop this trial`}
            </Button>
          ) : null}
          {stop.error === null ? null : <Problem error={stop.error} />}
        </section>
      </div>
      {detail.error === null ? null : <Problem error={detail.error} again={() => void detail.refetch()} />}
      {detail.data === undefined ? null : <Record detail={detail.data} />}
    </div>
  );
}

function Record({ detail }: { detail: TrialDetail }) {
  const metrics = [...new Set(detail.measurements.flatMap((measurement) => Object.keys(measurement.metrics)))];
  return (
    <>
      {detail.measurements.length === 0 ? null : (
        <section>
          <h3>{t`Measurements`}</h3>
          <div className={styles.scroll}>
            <table className={styles.measurements}>
              <thead>
                <tr>
                  <th scope="col">{t`step`}</th>
                  {metrics.map((metric) => (
                    <th key={metric} scope="col">
                      {metric}
                    </th>
                  ))}
                  <th scope="col">{t`elapsed`}</th>
                </tr>
              </thead>
              <tbody>
                {detail.measurements.map(({ step, metrics: values, elapsed_seconds }) => (
                  <tr key={step}>
                    <td>{step}</td>
                    {metrics.map((metric) => (
                      <td key={metric}>{values[metric] === undefined ? "—" : formatNumber(values[metric], 6)}</td>
                    ))}
                    <td>{elapsed_seconds === null ? "—" : formatDuration(elapsed_seconds)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {detail.log === "" ? null : (
        <section className={styles.log}>
          <h3>{t`Output`}</h3>
          <Code>{detail.log}</Code>
        </section>
      )}
    </>
  );
}

function Moment({ name, at }: { name: string; at: string | null }) {
  if (at === null) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <time dateTime={at}>{formatTime(new Date(at))}</time>
      </dd>
    </div>
  );
}
