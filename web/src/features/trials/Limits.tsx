import { plural, t } from "@lingui/core/macro";
import { useMemo } from "react";
import { Button } from "@/components/Button";
import type { StudySpec, Trial } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";
import styles from "./TrialTable.module.css";

interface Props {
  spec: StudySpec;
  trials: readonly Trial[];
  where: readonly string[];
  onWhere: (where: string[]) => void;
}

/** Say how many completed trials break each outcome constraint, with a button that shows only these; nothing without constraints. */
export function Limits({ spec, trials, where, onWhere }: Props) {
  const limits = useMemo(() => brokenLimits(spec.outcome_constraints ?? [], trials), [spec, trials]);
  const completed = trials.filter(({ state }) => state === "COMPLETED").length;
  if (limits.length === 0) return null;
  return (
    <ul className={styles.limits} aria-label={t`Outcome constraints`}>
      {limits.map(({ limit, broken, condition }) => (
        <li key={limit}>
          <code>{limit}</code>
          <span>
            {broken === 0 ? t`Every completed trial keeps it.` : plural(broken, { one: `# of ${formatNumber(completed)} completed trials breaks it. It is never the best.`, other: `# of ${formatNumber(completed)} completed trials break it. They are never the best.` })}
          </span>
          {broken === 0 || condition === null || where.includes(condition) ? null : (
            <Button small onClick={() => onWhere([...where, condition])}>
              {t`Show them`}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Return a broken limit with what was measured: "memory_mb <= 900 (memory_mb: 1,433)". */
export function brokenText(limit: string, metrics: Readonly<Record<string, number>>): string {
  const named = Object.entries(metrics).filter(([name]) => limit.split(/[^\p{L}\p{N}_.-]+/u).includes(name));
  return named.length === 0 ? limit : `${limit} (${named.map(([name, value]) => `${name}: ${formatNumber(value)}`).join(", ")})`;
}

const OPPOSITES: Readonly<Record<string, string>> = { "<=": ">", ">=": "<", "<": ">=", ">": "<=" };

interface Limit {
  limit: string;
  /** Completed trials that break it. */
  broken: number;
  /** The condition of the table that only those meet; null if it cannot be written as one. */
  condition: string | null;
}

/** Return how many of the completed trials break each limit, and the condition that selects them. */
export function brokenLimits(limits: readonly string[], trials: readonly Trial[]): Limit[] {
  return limits.map((limit) => {
    const [, metric, operator = "", value] = /^\s*([\w.-]+)\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*$/.exec(limit) ?? [];
    const broken = trials.filter(({ state, breaks }) => state === "COMPLETED" && breaks?.includes(limit)).length;
    // eslint-disable-next-line lingui/no-unlocalized-strings -- a condition
    return { limit, broken, condition: metric === undefined || value === undefined ? null : `metric:${metric} ${OPPOSITES[operator] ?? ""} ${value}` };
  });
}
