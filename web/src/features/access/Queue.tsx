import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Conditions, type Filtered } from "@/components/Conditions";
import { Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import type { QueuedTenant } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { formatNumber, formatDuration } from "@/lib/format";
import { queueQuery } from "./api";
import styles from "./access.module.css";

const COLUMNS: Columns<QueuedTenant> = {
  tenant: { text: ({ tenant }) => tenant },
  waiting: { number: ({ waiting }) => waiting },
  seconds: { number: ({ oldest_seconds }) => oldest_seconds },
  running: { number: ({ computing }) => computing },
  trials: { number: ({ trials_waiting }) => trials_waiting },
};

/** Show, for operators, what waits for workers and agents in all tenants. It is fetched every two seconds. */
export function Queue({ where, onWhere }: Filtered) {
  const { data, error, refetch } = useQuery(queueQuery);
  if (data === undefined) return error === null ? <Loading what={t`queue`} /> : <Problem error={error} again={() => void refetch()} />;
  const { workers, tenants } = data;
  const { rows, wrong } = select(tenants, where, COLUMNS);
  const busy = workers.filter((worker) => worker.busy).length;
  const oldest = Math.max(0, ...tenants.map((one) => one.oldest_seconds ?? 0));
  const waiting = sum(tenants.map((one) => one.waiting));
  return (
    <Card title={t`Queue`} flush>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      <dl className={`${styles.quota} ${styles.padded}`}>
        <Fact
          name={t`Active workers`}
          value={formatNumber(workers.length)}
          note={workers.length === 0 ? t`operations wait until a worker starts` : busy === 0 ? t`all idle` : t`${formatNumber(busy)} busy`}
        />
        <Fact name={t`Operations waiting`} value={formatNumber(waiting)} note={waiting === 0 ? "" : t`longest wait ${formatDuration(oldest)}`} />
        <Fact name={t`Operations running`} value={formatNumber(sum(tenants.map((one) => one.computing)))} />
        <Fact name={t`Trials waiting for agents`} value={formatNumber(sum(tenants.map((one) => one.trials_waiting)))} />
      </dl>
      {tenants.length === 0 ? (
        <p className={`${styles.soft} ${styles.padded}`}>{t`The queue is empty.`}</p>
      ) : (
        <>
          <Conditions where={where} columns={Object.keys(COLUMNS)} example="seconds > 60" wrong={wrong} matches={rows.length} onChange={onWhere} />
          <table className={table.table} aria-label={t`By tenant`}>
            <thead>
              <tr>
                <th scope="col">{t`Tenant`}</th>
                <th scope="col" className={table.number}>
                  {t`Waiting`}
                </th>
                <th scope="col" className={table.number}>
                  {t`Longest wait`}
                </th>
                <th scope="col" className={table.number}>
                  {t`Running`}
                </th>
                <th scope="col" className={table.number}>
                  {t`Trials waiting`}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((one) => (
                <tr key={one.tenant}>
                  <th scope="row">{one.tenant}</th>
                  <td data-label={t`Waiting`} className={table.number}>
                    {formatNumber(one.waiting)}
                  </td>
                  <td data-label={t`Longest wait`} className={table.number}>
                    {one.oldest_seconds === null ? "—" : formatDuration(one.oldest_seconds)}
                  </td>
                  <td data-label={t`Running`} className={table.number}>
                    {formatNumber(one.computing)}
                  </td>
                  <td data-label={t`Trials waiting`} className={table.number}>
                    {formatNumber(one.trials_waiting)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Card>
  );
}

function Fact({ name, value, note = "" }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b> <span className={styles.soft}>{note}</span>
      </dd>
    </div>
  );
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
