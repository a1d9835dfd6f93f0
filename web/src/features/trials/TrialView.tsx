import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { StateBadge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Chart, type Palette } from "@/components/Chart";
import { CopyButton } from "@/components/CopyButton";
import { Code, Empty, Problem } from "@/components/Message";
import { axis, frame, scaleAxis } from "@/components/plot";
import type { Configuration, Lease, StudySpec, Trial, TrialDetail } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatMetric, formatNumber, formatTime, formatValue, unitOf } from "@/lib/format";
import { useStopTrial } from "./api";
import { LogTail } from "./LogTail";
import { MeasureAgain } from "./MeasureAgain";
import { duration, measuredBy } from "./sorting";
import styles from "./TrialView.module.css";

interface Props {
  study: string;
  spec: StudySpec;
  trial: TrialDetail;
  standard: Configuration | undefined;
  /** Of the best configuration; undefined while there is none. */
  best: { number: number; params: Configuration } | undefined;
  mayTune: boolean;
}

/** All that is known of one trial. */
export function TrialView({ study, spec, trial, standard, best, mayTune }: Props) {
  const open = trial.state === "ACTIVE" || trial.state === "REQUESTED";
  return (
    <>
      {trial.reason === "" ? null : <p className={styles.reason}>{trial.reason}</p>}
      <Facts study={study} spec={spec} trial={trial} mayTune={mayTune} open={open} />
      <div className={styles.columns}>
        <Card
          title="Parameters"
          flush
          actions={
            <>
              {mayTune ? <MeasureAgain study={study} params={trial.params} /> : null}
              <CopyButton label="Copy as JSON" text={JSON.stringify(trial.params, null, 2)} />
            </>
          }
        >
          <Parameters spec={spec} trial={trial} standard={standard} best={best} />
        </Card>
        <div className={styles.column}>
          <Metrics spec={spec} trial={trial} />
          {trial.measurements.length > 1 ? <Steps study={study} trial={trial} /> : null}
        </div>
      </div>
      <Card title="Output">
        {open && trial.agent !== "" ? (
          <LogTail study={study} number={trial.number} />
        ) : trial.log === "" ? (
          <p className={styles.soft}>{trial.agent === "" ? "No agent ran it: whoever measured it kept its output." : "It printed nothing."}</p>
        ) : (
          <Code>{trial.log}</Code>
        )}
      </Card>
      <Card title="Runs on agents" flush>
        {trial.leases.length === 0 ? (
          <Empty title={spec.execution ? "No agent was given it yet" : "This study is measured by its own script"} />
        ) : (
          <Leases spec={spec} leases={trial.leases} />
        )}
      </Card>
    </>
  );
}

function Facts({ study, spec, trial, mayTune, open }: { study: string; spec: StudySpec; trial: TrialDetail; mayTune: boolean; open: boolean }) {
  const stop = useStopTrial(study, trial.number);
  const { execution } = spec;
  return (
    <>
      <dl className={styles.facts}>
        <Fact name="State">
          <StateBadge state={trial.state} />
        </Fact>
        <Fact name="Origin">{trial.origin}</Fact>
        <Fact name="Measured by">{measuredBy(trial) || "—"}</Fact>
        <Fact name="Duration">
          <Elapsed trial={trial} />
        </Fact>
        {trial.seconds === null ? null : <Fact name="Its own running time">{formatDuration(trial.seconds)}</Fact>}
        {trial.attempt > 1 ? <Fact name="Attempt">{trial.attempt}</Fact> : null}
        {execution ? (
          <Fact name="Component">
            {execution.component}
            {execution.application ? ` / ${execution.application}` : ""}
          </Fact>
        ) : null}
        <Fact name="Asked for">{formatTime(new Date(trial.created_at))}</Fact>
        {open && mayTune ? (
          <Button kind="danger" disabled={stop.isPending} onClick={() => stop.mutate()}>
            Stop this trial
          </Button>
        ) : null}
      </dl>
      {stop.error === null ? null : <Problem error={stop.error} />}
    </>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Elapsed({ trial }: { trial: Trial }) {
  const seconds = duration(trial, useNow(1000));
  return <>{seconds === null ? "—" : formatDuration(trial.state === "ACTIVE" && seconds >= 1 ? Math.floor(seconds) : seconds)}</>;
}

function Parameters({ spec, trial, standard, best }: { spec: StudySpec; trial: Trial; standard: Configuration | undefined; best: Props["best"] }) {
  const own = best?.params !== undefined && spec.space.parameters.every(({ name }) => best.params[name] === trial.params[name]);
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">This trial</th>
            <th scope="col">Default</th>
            {best === undefined ? null : <th scope="col">{own ? "Best (this one)" : `Best (trial ${best.number})`}</th>}
          </tr>
        </thead>
        <tbody>
          {spec.space.parameters.map(({ name }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className={standard !== undefined && trial.params[name] !== standard[name] ? styles.differs : undefined}>{formatValue(trial.params[name])}</td>
              <td>{formatValue(standard?.[name])}</td>
              {best === undefined ? null : <td className={best.params[name] === trial.params[name] ? undefined : styles.other}>{formatValue(best.params[name])}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Metrics({ spec, trial }: { spec: StudySpec; trial: Trial }) {
  const entries = Object.entries(trial.metrics ?? {});
  return (
    <Card title="Metrics" flush>
      {entries.length === 0 ? (
        <p className={styles.none}>{trial.state === "ACTIVE" || trial.state === "REQUESTED" ? "They come with its end." : "It gave none."}</p>
      ) : (
        <table className={styles.table}>
          <tbody>
            {entries.map(([metric, value]) => {
              const objective = spec.objectives.find((objective) => objective.metric === metric);
              return (
                <tr key={metric}>
                  <th scope="row">
                    {metric}
                    {objective === undefined ? null : <span className={styles.soft}> {objective.goal}d</span>}
                  </th>
                  <td>{formatMetric(value, unitOf(objective ?? { metric }), 6)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Card>
  );
}

/** Metrics over a trial's steps. */
function Steps({ study, trial }: { study: string; trial: TrialDetail }) {
  const option = useCallback((palette: Palette) => stepsOption(palette, trial), [trial]);
  return (
    <Card title="Over its steps">
      <Chart name={`${study}-trial-${trial.number}`} label={`Metrics of trial ${trial.number} over ${trial.measurements.length} steps.`} height={240} option={option} />
    </Card>
  );
}

function stepsOption(palette: Palette, { measurements }: TrialDetail): EChartsOption {
  const metrics = [...new Set(measurements.flatMap(({ metrics }) => Object.keys(metrics)))];
  return {
    ...frame(palette),
    legend: metrics.length > 1 ? { textStyle: { color: palette.soft }, top: 0 } : { show: false },
    grid: { left: 8, right: 16, top: metrics.length > 1 ? 34 : 12, bottom: 24, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesName } = item as unknown as { value: number[]; seriesName: string };
        return `Step ${value[0] ?? ""}\n${seriesName} ${formatNumber(value[1] ?? NaN, 6)}`;
      },
    },
    xAxis: { type: "value", scale: true, minInterval: 1, name: "step", nameLocation: "middle", nameGap: 24, ...axis(palette) },
    yAxis: { type: "value", scale: true, ...scaleAxis(palette, (value) => formatNumber(value, 3)) },
    series: metrics.map((metric, index) => ({
      type: "line",
      name: metric,
      showSymbol: measurements.length < 200,
      color: palette.series[index % palette.series.length] ?? palette.accent,
      data: measurements.flatMap(({ step, metrics: values }) => (values[metric] === undefined ? [] : [[step, values[metric]]])),
    })),
  };
}

const OUTCOMES: Record<Lease["state"], string> = { HELD: "running", SETTLED: "settled", EXPIRED: "its agent was not heard of in time" };

function Leases({ spec, leases }: { spec: StudySpec; leases: Lease[] }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Attempt</th>
            <th scope="col">Agent</th>
            <th scope="col">Node</th>
            <th scope="col">Given out</th>
            <th scope="col">Began</th>
            <th scope="col">Ended</th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {leases.map((lease) => (
            <tr key={`${lease.attempt} ${lease.granted_at}`}>
              <th scope="row">{lease.attempt}</th>
              <td>
                {lease.agent} <span className={styles.soft}>{lease.agent_version}</span>
                <Labels labels={lease.labels} />
              </td>
              <td>{lease.node || "—"}</td>
              <Moment at={lease.granted_at} />
              <Moment at={lease.started_at} />
              <Moment at={lease.settled_at} />
              <td>
                {lease.outcome || OUTCOMES[lease.state]}
                {lease.reason === "" ? null : <span className={styles.soft}> {lease.reason}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className={styles.none}>
        The agent itself makes the command line, from its own component file
        {spec.execution?.digest ? ` (version ${spec.execution.digest.slice(0, 12)})` : ""}: the service sends values, and does not know it.
      </p>
    </div>
  );
}

function Labels({ labels }: { labels: Record<string, unknown> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return null;
  return <span className={styles.labels}>{entries.map(([name, value]) => `${name} ${String(value)}`).join(", ")}</span>;
}

function Moment({ at }: { at: string | null }) {
  return <td>{at === null ? "—" : <time dateTime={at}>{formatTime(new Date(at))}</time>}</td>;
}
