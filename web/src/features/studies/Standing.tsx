import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { Study } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { standingQuery } from "./api";
import type { Connection } from "./feed";
import styles from "./Standing.module.css";

/** Show what a study with waiting trials and no running one waits for; nothing if it does not wait. */
export function Standing({ study }: { study: Study }) {
  const waits = study.state === "ACTIVE" && Boolean(study.spec.execution) && study.requested_count > 0 && study.active_count === 0;
  const { data } = useQuery({ ...standingQuery(study.name), enabled: waits });
  if (!waits || data === undefined || data.reason === "") return null;
  return (
    // Without a place in the queue, no online agent fits.
    <p className={data.place === null ? styles.blocked : styles.queued} role="status">
      {reasonText(data.reason, data.reason_data)}
    </p>
  );
}

const TEXTS: Record<Connection, [text: MessageDescriptor, explanation: MessageDescriptor]> = {
  connecting: [msg`Connecting …`, msg`Connecting to the service`],
  live: [msg`Live`, msg`Changes are shown as they happen`],
  waiting: [msg`Reconnecting …`, msg`The connection was lost. The data may be out of date. The console reconnects automatically.`],
  gone: [msg`Deleted`, msg`The study was deleted`],
};

/** Show whether the page is up to date. */
export function ConnectionState({ connection, study }: { connection: Connection; study: Study }) {
  const ended = connection === "live" && (study.state === "COMPLETED" || study.state === "ABORTED") && study.active_count === 0;
  const [text, explanation] = ended ? [msg`Up to date`, msg`The study has ended`] : TEXTS[connection];
  return (
    <span className={`${styles.state} ${ended ? styles.ended : styles[connection]}`} role="status" title={i18n._(explanation)}>
      <span className={styles.dot} aria-hidden="true" />
      {i18n._(text)}
    </span>
  );
}
