import { plural, t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import type { Configuration } from "@/lib/api/client";
import { useOneAtATime } from "@/lib/session";
import { useEnqueue } from "./api";

/** A button that enqueues a configuration for one more measurement. */
export function MeasureAgain({ study, params }: { study: string; params: Configuration }) {
  const enqueue = useEnqueue(study);
  const again = useOneAtATime(enqueue.mutate);
  const [count, setCount] = useState(0);
  const text =
    enqueue.error !== null
      ? enqueue.error.message
      : count > 0
        ? plural(count, { one: "# trial enqueued", other: "# trials enqueued" })
        : "";
  return (
    <>
      <span role="status" style={{ color: enqueue.error === null ? "var(--soft)" : "var(--bad)", fontSize: "0.86rem" }}>
        {text}
      </span>
      <Button small disabled={enqueue.isPending} onClick={() => again({ params, count: 1 }, () => setCount(count + 1))}>
        {t`Measure again`}
      </Button>
    </>
  );
}
