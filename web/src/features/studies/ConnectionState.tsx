import type { Study } from "@/lib/api/client";
import type { Connection } from "./feed";
import styles from "./ConnectionState.module.css";

const TEXTS: Record<Connection, [text: string, explanation: string]> = {
  connecting: ["Connecting …", "Connecting to the service"],
  live: ["Live", "Changes are shown as they happen"],
  waiting: ["Reconnecting …", "The connection was lost. What you see may be old; it goes on by itself."],
  gone: ["Deleted", "The study was deleted"],
};

/** Whether what is shown is up to date. */
export function ConnectionState({ connection, study }: { connection: Connection; study: Study }) {
  const ended = connection === "live" && (study.state === "COMPLETED" || study.state === "ABORTED") && study.active_count === 0;
  const [text, explanation] = ended ? ["Up to date", "The study has ended"] : TEXTS[connection];
  return (
    <span className={`${styles.state} ${ended ? "" : styles[connection]}`} role="status" title={explanation}>
      <span className={styles.dot} aria-hidden="true" />
      {text}
    </span>
  );
}
