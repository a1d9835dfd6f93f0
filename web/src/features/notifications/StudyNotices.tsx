import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Ago } from "@/components/Time";
import { reasonText } from "@/lib/reasons";
import { noticesQuery } from "./api";
import styles from "./notifications.module.css";
import { titleOf } from "./titles";

const MOST = 6;

/** Show the latest notifications about a study; nothing if there is none. */
export function StudyNotices({ study }: { study: string }) {
  // eslint-disable-next-line lingui/no-unlocalized-strings -- a condition, which is the same in any language
  const { data } = useQuery(noticesQuery([`study = ${study}`]));
  if (data === undefined || data.notices.length === 0) return null;
  return (
    <Card title={t`Notifications`}>
      <ul className={`${styles.list} ${styles.plain}`}>
        {data.notices.slice(0, MOST).map((notice) => (
          <li key={notice.id}>
            <p className={styles.title}>
              {titleOf(notice)} <Ago at={notice.created_at} />
            </p>
            {notice.reason === "" ? null : <p className={styles.reason}>{reasonText(notice.reason, notice.reason_data)}</p>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
