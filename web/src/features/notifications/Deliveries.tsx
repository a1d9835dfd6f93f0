import { plural, t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Button, MoreButton } from "@/components/Button";
import { Card } from "@/components/Card";
import { Conditions, refusalOf, type Filtered } from "@/components/Conditions";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { Channel } from "@/lib/api/client";
import { DELIVERY_COLUMNS } from "@/lib/columns";
import { formatTime } from "@/lib/format";
import { deliveriesQuery } from "./api";
import styles from "./notifications.module.css";
import { kindText } from "./titles";

interface Props extends Filtered {
  channel: Channel;
  onClose: () => void;
}

/** Show what was sent through a channel, and how it ended. */
export function Deliveries({ channel, where, onWhere, onClose }: Props) {
  const query = useInfiniteQuery(deliveriesQuery(channel.id, where));
  const { data, error, refetch } = query;
  const deliveries = data?.pages.flatMap((page) => page.deliveries) ?? [];
  const states = { PENDING: t`waiting`, DELIVERED: t`delivered`, FAILED: t`failed` };
  return (
    <Card
      title={t`Deliveries to ${channel.target}`}
      flush
      actions={
        <Button small onClick={onClose}>
          {t`Close`}
        </Button>
      }
    >
      <Conditions where={where} error={error} columns={DELIVERY_COLUMNS} example="state = failed" onChange={onWhere} />
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`deliveries`} /> : null
      ) : deliveries.length === 0 ? (
        <Empty title={where.length > 0 ? t`No matching deliveries` : t`Nothing was sent yet`} />
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Time`}</th>
              <th scope="col">{t`Notification`}</th>
              <th scope="col">{t`State`}</th>
              <th scope="col">{t`Last attempt`}</th>
            </tr>
          </thead>
          <tbody>
            {deliveries.map((one) => (
              <tr key={one.id}>
                <td data-label={t`Time`}>
                  <Ago at={one.created_at} />
                </td>
                <td data-label={t`Notification`} className={styles.target}>
                  {kindText(one.kind)}
                  {one.study === "" ? "" : `: ${one.study}`}
                </td>
                <td data-label={t`State`}>
                  {states[one.state]} <span className={table.soft}>{plural(one.attempts, { one: "# attempt", other: "# attempts" })}</span>
                </td>
                <td data-label={t`Last attempt`} className={styles.target}>
                  {one.error === "" ? (one.status ?? "—") : <p className={styles.fault}>{one.error}</p>}
                  {one.state === "PENDING" && one.attempts > 0 ? t`The next attempt is at ${formatTime(new Date(one.due_at))}.` : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {query.hasNextPage ? <MoreButton query={query} /> : null}
    </Card>
  );
}
