import type { ReactNode } from "react";
import { CopyButton } from "@/components/CopyButton";
import table from "@/components/Table.module.css";
import type { ComponentDetail, Configuration, Parameter } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatMetric, formatValue, unitOf } from "@/lib/format";
import styles from "./BestSettings.module.css";

type Best = ComponentDetail["best"][number];

interface Props {
  best: Best[];
  space: readonly Parameter[];
  link: (study: string) => ReactNode;
}

/** The best settings that are known, for each application: what differs from the default, and what that gained. */
export function BestSettings({ best, space, link }: Props) {
  return (
    <ul className={styles.list}>
      {best.map((one) => (
        <li key={`${one.application} ${one.objective.metric}`} className={styles.one}>
          <div className={styles.head}>
            <h3>{one.application || "first application"}</h3>
            <Gain objective={one.objective} />
          </div>
          <p className={styles.soft}>
            {one.objective.metric} {one.objective.default === null ? "" : `${formatMetric(one.objective.default, unitOf(one.objective))} → `}
            {one.objective.best === null ? "" : formatMetric(one.objective.best, unitOf(one.objective))}, by {link(one.study)} after {one.trials}{" "}
            {one.trials === 1 ? "trial" : "trials"}
            {one.state === "ACTIVE" ? ", which still runs" : ""}
          </p>
          <Differences configuration={one.configuration} space={space} />
          <CopyButton text={JSON.stringify(one.configuration, null, 2)} label="Copy as JSON" />
        </li>
      ))}
    </ul>
  );
}

function Gain({ objective }: { objective: Best["objective"] }) {
  const { gain } = objective;
  if (gain === null) return null;
  const interval = formatGainInterval(objective);
  return (
    <span className={gain > 0 ? styles.gain : styles.soft}>
      {gain > 0 ? `${formatGain(gain)} better` : "no better than the default"}
      {interval === null ? null : <span className={styles.soft}> (95 %: {interval})</span>}
    </span>
  );
}

function Differences({ configuration, space }: { configuration: Configuration; space: readonly Parameter[] }) {
  const defaults = new Map(space.map(({ name, default: value }) => [name, value]));
  const changed = Object.entries(configuration).filter(([name, value]) => defaults.get(name) !== value);
  if (space.length > 0 && changed.length === 0) return <p>The default settings.</p>;
  return (
    <div className={styles.scroll}>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">Best</th>
            <th scope="col">Default</th>
          </tr>
        </thead>
        <tbody>
          {changed.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td data-label="Best">{formatValue(value)}</td>
              <td data-label="Default" className={table.soft}>
                {formatValue(defaults.get(name))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
