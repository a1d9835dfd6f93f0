import { t } from "@lingui/core/macro";
import type { SummarisedObjective } from "@/lib/api/client";
import { formatMetric, unitOf } from "@/lib/format";
import { Sparkline } from "./Sparkline";

/** Show how the best value of a study's search has become better, as a small line. */
export function Trend({ objective }: { objective: SummarisedObjective }) {
  const { trend, metric } = objective;
  const unit = unitOf(objective);
  const [first, last] = [trend[0], trend.at(-1)];
  if (first === undefined || last === undefined) return null;
  return <Sparkline values={trend} label={t`Best value of ${metric} so far: from ${formatMetric(first, unit)} to ${formatMetric(last, unit)}`} />;
}
