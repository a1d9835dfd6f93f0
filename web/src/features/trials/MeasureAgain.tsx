import { useState } from "react";
import { Button } from "@/components/Button";
import type { Configuration } from "@/lib/api/client";
import { useEnqueue } from "./api";

/** Has a configuration measured once more, before anything else. */
export function MeasureAgain({ study, params }: { study: string; params: Configuration }) {
  const enqueue = useEnqueue(study);
  const [count, setCount] = useState(0);
  const text = enqueue.error !== null ? enqueue.error.message : count > 0 ? `${count === 1 ? "1 trial waits" : `${count} trials wait`} to be measured` : "";
  return (
    <>
      <span role="status" style={{ color: enqueue.error === null ? "var(--soft)" : "var(--bad)", fontSize: "0.86rem" }}>
        {text}
      </span>
      <Button small disabled={enqueue.isPending} onClick={() => enqueue.mutate({ params, count: 1 }, { onSuccess: () => setCount(count + 1) })}>
        Measure again
      </Button>
    </>
  );
}
