import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useState } from "react";
import { Conditions } from "@/components/Conditions";
import table from "@/components/Table.module.css";
import type { Lease, TrialDetail } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { formatTime } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import styles from "./TrialView.module.css";

const OUTCOMES: Record<Lease["state"], MessageDescriptor> = { HELD: msg`running`, SETTLED: msg`ended`, EXPIRED: msg`lost contact with the agent` };

const COLUMNS: Columns<Lease> = {
  agent: { text: ({ agent }) => agent },
  attempt: { number: ({ attempt }) => attempt },
  node: { text: ({ node }) => node },
  state: { text: ({ state }) => state },
  outcome: { text: ({ outcome }) => outcome },
  reason: { text: ({ reason }) => reason },
};

/** A table of the leases of a trial: the agents that ran it, in order, and the outcomes. */
export function Leases({ leases, trial }: { leases: Lease[]; trial: Pick<TrialDetail, "reason" | "reason_data"> }) {
  const [where, setWhere] = useState<readonly string[]>([]);
  const { rows, wrong } = select(leases, where, COLUMNS);
  return (
    <>
      {leases.length < 2 ? null : <Conditions where={where} columns={Object.keys(COLUMNS)} example="attempt > 1" wrong={wrong} matches={rows.length} onChange={(next) => setWhere(next ?? [])} />}
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Agent`}</th>
            <th scope="col">{t`Attempt`}</th>
            <th scope="col">{t`Node`}</th>
            <th scope="col">{t`Granted`}</th>
            <th scope="col">{t`Started`}</th>
            <th scope="col">{t`Ended`}</th>
            <th scope="col">{t`Outcome`}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((lease) => (
            <tr key={`${lease.attempt} ${lease.granted_at}`}>
              <th scope="row">
                {lease.agent} <span className={table.soft}>{lease.agent_version}</span>
                <Labels labels={lease.labels} />
              </th>
              <td data-label={t`Attempt`}>{lease.attempt}</td>
              <td data-label={t`Node`}>{lease.node || "—"}</td>
              <Moment label={t`Granted`} at={lease.granted_at} />
              <Moment label={t`Started`} at={lease.started_at} />
              <Moment label={t`Ended`} at={lease.settled_at} />
              <td data-label={t`Outcome`}>
                <span>
                  {lease.outcome || i18n._(OUTCOMES[lease.state])}
                  {lease.reason === "" ? null : <span className={table.soft}> {reasonText(lease.reason, lease.reason === trial.reason ? trial.reason_data : null)}</span>}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Labels({ labels }: { labels: Record<string, unknown> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return null;
  return <span className={styles.labels}>{entries.map(([name, value]) => `${name} ${String(value)}`).join(", ")}</span>;
}

function Moment({ label, at }: { label: string; at: string | null }) {
  return <td data-label={label}>{at === null ? "—" : <time dateTime={at}>{formatTime(new Date(at))}</time>}</td>;
}
