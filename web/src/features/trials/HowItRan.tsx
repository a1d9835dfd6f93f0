import { t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import { Invocation } from "@/components/Invocation";
import type { TrialDetail } from "@/lib/api/client";
import { Fact } from "./Fact";
import styles from "./TrialView.module.css";

/** What the agent made of the configuration, in the latest of a trial's runs that has begun. */
export function HowItRan({ trial, execution }: { trial: TrialDetail; execution: boolean }) {
  const lease = trial.leases.findLast(({ started_at }) => started_at !== null);
  if (!execution || lease === undefined) return null;
  const { invocation } = lease;
  if (invocation === null || invocation.commands.length === 0) {
    return (
      <Card title={t`How it was run`}>
        <p className={styles.soft}>{t`Agent ${lease.agent} does not tell its command lines: its administrator decides so, or it is of an earlier version.`}</p>
      </Card>
    );
  }
  return (
    <Card title={t`How it was run`}>
      <dl className={styles.facts}>
        <Fact name={t`Agent's machine`}>{invocation.host}</Fact>
        <Fact name={t`Node`}>{lease.node || "—"}</Fact>
        <Fact name={t`Work folder`}>
          <code>{invocation.folder}</code>
        </Fact>
        {trial.leases.length > 1 ? <Fact name={t`Attempt`}>{lease.attempt}</Fact> : null}
      </dl>
      <div className={styles.below}>
        <Invocation told={invocation} />
      </div>
    </Card>
  );
}
