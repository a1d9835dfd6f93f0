import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";
import { Card } from "@/components/Card";
import { Legend } from "@/components/Chart";
import { Select } from "@/components/Select";
import type { Analysis, InsightData, Objective, Parameter } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { choicesOf, ticksOf } from "@/lib/scale";
import { isScaled, type Point } from "./front";
import { Correlations } from "./Correlations";
import { Cube } from "./Cube";
import { FrontChart } from "./FrontChart";
import styles from "./analysis.module.css";

interface Props {
  /** The parameters by whose values the points can be coloured and sized; none on paper. */
  parameters?: readonly Parameter[];
  study: string;
  objectives: Objective[];
  points: Point[];
  analysis: Analysis | undefined;
  data: InsightData | null;
  onPick: (trial: number) => void;
}

/** Show how objectives relate: correlations, the Pareto front of every pair, and three objectives in space. */
export function TradeOffs({ parameters = [], study, objectives, points, analysis, data, onPick }: Props) {
  const standard = analysis?.default?.numbers[0];
  // The first trials of the configurations in the Pareto set.
  const members = useMemo(() => analysis?.best.flatMap(({ numbers }) => numbers.slice(0, 1)), [analysis]);
  const [chosen, choose] = useState("");
  const colour = parameters.find(({ name }) => name === chosen);
  const [measured, measure] = useState("");
  const scaled = parameters.filter(isScaled);
  const size = scaled.find(({ name }) => name === measured);
  const pairs = objectives.flatMap((first, index) => objectives.slice(index + 1).map((second) => [first, second] as const));
  return (
    <>
      {parameters.length === 0 ? null : (
        <div className={styles.choice}>
          <Select label={t`Colour by`} labelled value={chosen} onChange={choose} options={[{ value: "", text: t`Pareto front` }, ...parameters.map(({ name }) => ({ value: name, text: name }))]} />
          {colour === undefined ? null : <ColourKey parameter={colour} />}
          {scaled.length === 0 ? null : (
            <Select label={t`Size by`} labelled value={measured} onChange={measure} options={[{ value: "", text: t`one size` }, ...scaled.map(({ name }) => ({ value: name, text: name }))]} />
          )}
          {size === undefined ? null : <SizeKey parameter={size} />}
        </div>
      )}
      <Legend>
        <li>
          <span className={styles.leads} aria-hidden="true" />
          {t`on the Pareto front: no configuration is expected to be better in one objective without being worse in the other`}
        </li>
        <li>
          <span className={styles.follows} aria-hidden="true" />
          {t`other configurations`}
        </li>
        {standard === undefined ? null : (
          <li>
            <span className={styles.start} aria-hidden="true" />
            {t`the default`}
          </li>
        )}
      </Legend>
      <div className={styles.pairs}>
        {pairs.map(([first, second]) => (
          <Card key={`${first.metric} ${second.metric}`} title={t`${second.metric} against ${first.metric}`}>
            <FrontChart study={study} first={first} second={second} points={points} standard={standard} members={pairs.length === 1 ? members : undefined} colour={colour} size={size} wide={pairs.length === 1} onPick={onPick} />
          </Card>
        ))}
      </div>
      {objectives.length > 2 ? <Cube study={study} objectives={objectives} points={points} standard={standard} members={objectives.length === 3 ? members : undefined} onPick={onPick} /> : null}
      {data === null ? null : <Correlations objectives={objectives} data={data} configurations={points.length} />}
    </>
  );
}

/** Show which colour stands for which value. */
function ColourKey({ parameter }: { parameter: Parameter }) {
  if (!isScaled(parameter)) {
    return (
      <ul className={styles.colours}>
        {choicesOf(parameter).map((value, index) => (
          <li key={String(value)}>
            <span className={styles.colour} style={{ background: `var(--series-${index + 1})` }} aria-hidden="true" />
            {formatValue(value)}
          </li>
        ))}
      </ul>
    );
  }
  const ticks = ticksOf(parameter);
  return (
    <span className={styles.key}>
      <span>{ticks[0]?.text}</span>
      <span className={styles.ramp} aria-hidden="true" />
      <span>{ticks.at(-1)?.text}</span>
    </span>
  );
}

/** Show the values of the smallest and the largest points. */
function SizeKey({ parameter }: { parameter: Parameter }) {
  const ticks = ticksOf(parameter);
  return (
    <span className={styles.key}>
      <span className={styles.small} aria-hidden="true" />
      <span>{ticks[0]?.text}</span>
      <span className={styles.large} aria-hidden="true" />
      <span>{ticks.at(-1)?.text}</span>
    </span>
  );
}
