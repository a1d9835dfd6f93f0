import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import compact from "@/components/CompactTable.module.css";
import { Wide } from "@/components/Table";
import type { Comparison, Scalar } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatValue } from "@/lib/format";
import styles from "./Differences.module.css";

type Better = Comparison["better"][number];

/** Say for each study whether its result is better than that of the first, by the runs of both configurations. */
export function Answers({ comparison: { better, metric } }: { comparison: Comparison }) {
  return (
    <ul className={styles.answers}>
      {better.map((one) => (
        <li key={one.study}>
          <p className={!one.fair ? styles.open : one.answer === "better" ? styles.good : one.answer === "worse" ? styles.bad : styles.open}>
            <Trans>
              Is <b>{one.study}</b> better than <b>{one.against}</b> in {metric}?
            </Trans>{" "}
            <b>{answerText(one)}</b>
          </p>
          <p className={styles.note}>{basisText(one)}</p>
        </li>
      ))}
    </ul>
  );
}

function answerText(one: Better): string {
  const { answer, gain } = one;
  const interval = formatGainInterval(one) ?? "";
  if (answer === "better" && gain !== null) return one.fair ? t`Yes, by ${formatGain(gain)} (${interval}).` : t`Probably, by ${formatGain(gain)} (${interval}).`;
  if (answer === "worse" && gain !== null) {
    return one.fair ? t`No, it is worse by ${formatGain(-gain)} (gain: ${interval}).` : t`Probably not: it is worse by ${formatGain(-gain)} (gain: ${interval}).`;
  }
  if (answer === "no measurable difference") return t`There is no measurable difference (gain: ${interval}).`;
  return t`This is not yet known. There are too few runs of these configurations.`;
}

function basisText({ study, against, runs, against_runs: others, answer, fair, same_machine: same }: Better): string {
  const parts = [
    t`From ${plural(runs, { one: "# run", other: "# runs" })} of the recommended configuration of ${study} and ${plural(others, { one: "# run", other: "# runs" })} of that of ${against}, by a rank test. All intervals in this list hold at once with 95 %.`,
    answer === "not yet known" ? t`Run the final check of both studies to find out.` : fair ? "" : t`The search has chosen a configuration by some of these runs, so that they are too good on average. The final checks of both studies show which is better.`,
    same ? "" : t`Different machines have measured them, and the difference may be that of the machines.`,
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Compare the recommended configurations, at first only the parameters in which they differ. */
export function ConfigurationDifferences({ comparison: { curves } }: { comparison: Comparison }) {
  const [all, setAll] = useState(false);
  const rows = rowsOf(curves);
  const differing = rows.filter(({ differs }) => differs);
  if (curves.every(({ configuration }) => configuration === null)) return <p className={styles.none}>{t`No study has a result yet.`}</p>;
  return (
    <>
      {differing.length === 0 && !all ? (
        <p className={styles.none}>{t`The recommended configurations are equal.`}</p>
      ) : (
        <Wide label={t`Recommended configurations`}>
          <table className={`${compact.table} ${styles.table}`}>
            <thead>
              <tr>
                <th scope="col">{t`Parameter`}</th>
                {curves.map(({ study }) => (
                  <th key={study} scope="col">
                    {study}
                  </th>
                ))}
                <th scope="col">{t`Default`}</th>
              </tr>
            </thead>
            <tbody>
              {(all ? rows : differing).map(({ name, values, units, standards, differs }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {values.map((value, index) => (
                    <td key={curves[index]?.study} className={differs ? styles.differs : undefined}>
                      {formatValue(value, units[index])}
                    </td>
                  ))}
                  <td className={styles.soft}>{standards.join(" / ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {rows.length === differing.length ? null : (
        <p className={styles.foot}>
          <Button small kind="quiet" onClick={() => setAll(!all)}>
            {all ? t`Show only differences` : plural(rows.length - differing.length, { one: "Show # equal parameter", other: "Show # equal parameters" })}
          </Button>
        </p>
      )}
    </>
  );
}

/** Show the settings in which the studies differ. */
export function SettingDifferences({ comparison: { curves, settings } }: { comparison: Comparison }) {
  if (settings.length === 0) return <p className={styles.none}>{t`The studies have the same settings.`}</p>;
  return (
    <Wide label={t`Settings that differ`}>
      <table className={`${compact.table} ${styles.table}`}>
        <thead>
          <tr>
            <th scope="col">{t`Setting`}</th>
            {curves.map(({ study }) => (
              <th key={study} scope="col">
                {study}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {settings.map(({ name, values }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {values.map((value, index) => (
                <td key={curves[index]?.study}>{value ?? "—"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

/** A parameter of compared studies: its value in each recommended configuration, and the different defaults as texts. */
export interface Row {
  name: string;
  values: (Scalar | undefined)[];
  standards: string[];
  /** The unit of each study's values; undefined: none. */
  units: (string | undefined)[];
  differs: boolean;
}

/** Return a row for each parameter that any recommended configuration has. Studies without a result do not make it differ. */
export function rowsOf(curves: readonly Pick<Comparison["curves"][number], "configuration" | "default" | "units">[]): Row[] {
  const names = [...new Set(curves.flatMap(({ configuration, default: standard }) => Object.keys(configuration ?? standard)))];
  return names.map((name) => {
    const known = curves.flatMap(({ configuration }) => (configuration === null ? [] : [configuration[name]]));
    return {
      name,
      values: curves.map(({ configuration }) => configuration?.[name]),
      standards: [...new Set(curves.map(({ default: standard, units }) => formatValue(standard[name], units[name])))],
      units: curves.map(({ units }) => units[name]),
      differs: new Set(known).size > 1,
    };
  });
}
