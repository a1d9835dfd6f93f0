import { useQuery } from "@tanstack/react-query";
import type { Study } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { standingQuery } from "./api";
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
