import { plural, t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { Problem } from "@/components/Message";
import type { Trial } from "@/lib/api/client";
import { saveText } from "@/lib/save";
import { useStopTrials } from "./api";
import { csvText } from "./exported";
import styles from "./TrialTable.module.css";

/** The actions on the selected trials: export them, and stop those that are open. */
export function SelectedTrials({ study, trials, mayStop, onClear }: { study: string; trials: Trial[]; mayStop: boolean; onClear: () => void }) {
  const stop = useStopTrials(study);
  const open = trials.filter(({ state }) => state === "ACTIVE" || state === "REQUESTED");
  const sorted = [...trials].sort((a, b) => a.number - b.number);
  return (
    <section className={styles.selected} aria-label={t`Selected trials`}>
      <span>{plural(trials.length, { one: "# selected", other: "# selected" })}</span>
      <Button small onClick={() => saveText(`${study}-trials.csv`, "text/csv", csvText(sorted))}>
        {t`Export as CSV`}
      </Button>
      <Button small onClick={() => saveText(`${study}-trials.json`, "application/json", `${JSON.stringify(sorted, null, 2)}\n`)}>
        {t`Export as JSON`}
      </Button>
      {mayStop && open.length > 0 ? (
        <Button small kind="danger" disabled={stop.isPending} onClick={() => stop.mutate(open.map(({ number }) => number), { onSuccess: onClear })}>
          {plural(open.length, { one: "Stop # trial", other: "Stop # trials" })}
        </Button>
      ) : null}
      <Button small kind="quiet" onClick={onClear}>
        {t`Clear selection`}
      </Button>
      {stop.error === null ? null : <Problem error={stop.error} />}
    </section>
  );
}
