import { t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import { Legend } from "@/components/Legend";
import type { InsightData, Objective } from "@/lib/api/client";
import { Correlations } from "./Correlations";
import { Cube } from "./Cube";
import type { Point } from "./front";
import { FrontChart } from "./FrontChart";
import styles from "./analysis.module.css";

interface Props {
  study: string;
  objectives: Objective[];
  points: Point[];
  standard: number | undefined;
  data: InsightData | null;
  onPick: (trial: number) => void;
}

/** Show how objectives relate: correlations, the Pareto front of every pair, and three objectives in space. */
export function TradeOffs({ study, objectives, points, standard, data, onPick }: Props) {
  const pairs = objectives.flatMap((first, index) => objectives.slice(index + 1).map((second) => [first, second] as const));
  return (
    <>
      {data === null ? null : <Correlations objectives={objectives} data={data} />}
      <Legend>
        <li>
          <span className={styles.leads} aria-hidden="true" />
          {t`on the Pareto front: no configuration is better in one objective without being worse in the other`}
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
            <FrontChart study={study} first={first} second={second} points={points} standard={standard} onPick={onPick} />
          </Card>
        ))}
      </div>
      {objectives.length > 2 ? <Cube study={study} objectives={objectives} points={points} standard={standard} onPick={onPick} /> : null}
    </>
  );
}
