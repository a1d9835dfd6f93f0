import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Bell } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Conditions, refusalOf } from "@/components/Conditions";
import { Empty, Loading, Problem } from "@/components/Message";
import { Popover } from "@/components/Popover";
import { Ago } from "@/components/Time";
import type { Notice } from "@/lib/api/client";
import { NOTICE_COLUMNS } from "@/lib/columns";
import { formatNumber } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { noticesQuery, useReadNotices } from "./api";
import styles from "./notifications.module.css";
import { titleOf } from "./titles";

// The service counts no further.
const MOST_UNREAD = 100;

interface Props {
  /** A link to the study or record of a notification; `close` closes the list. */
  link: (notice: Notice, text: string, close: () => void) => ReactNode;
}

/** A button with the number of unread notifications, which opens their list. Notifications that were shown are read when it closes. */
export default function NotificationList({ link }: Props) {
  const [open, setOpen] = useState(false);
  const [where, setWhere] = useState<readonly string[]>([]);
  const { data, error, refetch } = useQuery(noticesQuery(where));
  const read = useReadNotices();
  const unread = data?.unread ?? 0;
  const shown = unread >= MOST_UNREAD ? `${formatNumber(MOST_UNREAD)}+` : formatNumber(unread);
  const name = unread === 0 ? t`Notifications` : plural(unread, { one: "# unread notification", other: "# unread notifications" });
  const change = (next: boolean) => {
    setOpen(next);
    const newest = data?.notices[0];
    // A filter hides notifications, which then stay unread.
    if (!next && where.length === 0 && unread > 0 && newest !== undefined) read.mutate(newest.id);
    if (!next) setWhere([]);
  };
  return (
    <Popover
      label={t`Notifications`}
      open={open}
      onOpenChange={change}
      trigger={
        <Button small kind="quiet" aria-label={name} title={name} className={styles.button}>
          <Bell />
          {unread === 0 ? null : (
            <span className={styles.count} aria-hidden="true">
              {shown}
            </span>
          )}
        </Button>
      }
    >
      <h2 className={styles.heading}>{t`Notifications`}</h2>
      {where.length === 0 && data?.notices.length === 0 ? null : <Conditions bare where={where} error={error} columns={NOTICE_COLUMNS} example="study = nightly" onChange={(next) => setWhere(next ?? [])} />}
      {error === null || refusalOf(error) !== null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`notifications`} /> : null
      ) : data.notices.length === 0 && where.length > 0 ? (
        <Empty title={t`No matching notifications`} />
      ) : data.notices.length === 0 ? (
        <Empty title={t`No notifications`}>
          <p>{t`The service writes one when a study ends, fails or proves a gain, and when a record is withdrawn.`}</p>
        </Empty>
      ) : (
        <ul className={styles.list}>
          {data.notices.map((notice) => (
            <li key={notice.id} className={notice.id > data.seen ? styles.unread : undefined}>
              <p className={styles.title}>
                {link(notice, titleOf(notice), () => change(false))} <Ago at={notice.created_at} />
              </p>
              {notice.reason === "" ? null : <p className={styles.reason}>{reasonText(notice.reason, notice.reason_data)}</p>}
            </li>
          ))}
        </ul>
      )}
    </Popover>
  );
}
