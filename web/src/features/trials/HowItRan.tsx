import { t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import { Invocation } from "@/components/Invocation";
import type { TrialDetail } from "@/lib/api/client";
import { Fact } from "./Fact";
import styles from "./TrialView.module.css";

/** Show the commands that the agent rendered for the latest run of a trial that has started. */
export function HowItRan({ trial, execution }: { trial: TrialDetail; execution: boolean }) {
  const lease = trial.leases.findLast(({ started_at }) => started_at !== null);
  if (!execution || lease === undefined) return null;
  const { invocation } = lease;
  if (invocation === null || invocation.commands.length === 0) {
    return (
      <Card title={t`Execution`}>
        <p className={styles.soft}>{t`Agent ${lease.agent} does not report its command lines. Its administrator has disabled this, or the agent is an earlier version.`}</p>
      </Card>
    );
  }
  return (
    <Card title={t`Execution`}>
      <dl className={styles.facts}>
        <Fact name={t`Agent host`}>{invocation.host}</Fact>
        <Fact name={t`Node`}>{lease.node || "—"}</Fact>
        <Fact name={t`Working directory`}>
          <code>{invocation.folder}</code>
        </Fact>
        {trial.leases.length > 1 ? <Fact name={t`Attempt`}>{lease.attempt}</Fact> : null}
      </dl>
      <div className={styles.below}>
        <Invocation invocation={invocation} />
      </div>
    </Card>
  );
}
