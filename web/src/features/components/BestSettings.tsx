import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";
import { ConfigurationTable } from "@/components/Table";
import { CopyButton } from "@/components/Button";
import { GainText } from "@/components/GainText";
import type { ComponentDetail, Configuration, Parameter } from "@/lib/api/client";
import { formatMetric, unitOf } from "@/lib/format";
import { unitsOf } from "@/lib/space";
import { changesText, conditionText } from "@/lib/verdicts";
import styles from "./BestSettings.module.css";

type Best = ComponentDetail["best"][number];

interface Props {
  best: Best[];
  space: readonly Parameter[];
  link: (study: string) => ReactNode;
}

/** Show the best known settings for each application: the differences from the default, and the gain. */
export function BestSettings({ best, space, link }: Props) {
  return (
    <ul className={styles.list}>
      {best.map((one) => (
        <li key={`${one.application} ${JSON.stringify(one.context)} ${one.objective.metric}`} className={styles.one}>
          <div className={styles.head}>
            <h3>{[one.application || t`first application`, changesText(one.context, undefined)].filter(Boolean).join(", ")}</h3>
            <GainText objective={one.objective} />
          </div>
          <p className={styles.soft}>
            {one.objective.metric} {one.objective.default === null ? "" : `${formatMetric(one.objective.default, unitOf(one.objective))} → `}
            {one.objective.best === null ? "" : formatMetric(one.objective.best, unitOf(one.objective))},{" "}
            <Trans>
              by {link(one.study)} after <Plural value={one.trials} one="# trial" other="# trials" />
            </Trans>
            {one.state === "ACTIVE" ? `, ${t`still running`}` : ""}
            {one.machine === "" ? "" : `, ${t`on ${one.machine}`}`}
          </p>
          {one.elsewhere ? <p className={styles.elsewhere}>{one.objective.level === "proven" ? t`Proven on another machine` : t`Measured on another machine`}</p> : null}
          {one.objective.conditions.filter(({ code }) => code !== "machine").map((condition) => (
            <p key={condition.text} className={styles.soft}>
              {conditionText(condition)}
            </p>
          ))}
          {one.objective.doubtful && !one.objective.rounds ? <p className={styles.soft}>{doubts(one.objective.doubtful, one.objective.measured ?? 0)}</p> : null}
          <Differences configuration={one.configuration} space={space} />
          <CopyButton text={JSON.stringify(one.configuration, null, 2)} label={t`Copy as JSON`} />
        </li>
      ))}
    </ul>
  );
}

function doubts(doubtful: number, measured: number): string {
  return t`${doubtful} of ${plural(measured, { one: "# timing is", other: "# timings are" })} doubtful.`;
}

function Differences({ configuration, space }: { configuration: Configuration; space: readonly Parameter[] }) {
  const defaults: Configuration = Object.fromEntries(space.flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, value]])));
  const changed = Object.keys(configuration).filter((name) => defaults[name] !== configuration[name]);
  if (space.length > 0 && changed.length === 0) return <p>{t`Same as the default settings.`}</p>;
  return <ConfigurationTable names={changed} columns={[{ title: t`Best`, values: configuration }]} standard={defaults} units={unitsOf(space)} />;
}
