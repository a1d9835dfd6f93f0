import { useEffect, useState } from "react";
import type { LogEvent } from "@/lib/api/client";

// Characters: as many as a page can show without becoming slow.
const KEPT = 64_000;

/** Return the end of a trial's output, live while it runs; null until something has arrived. */
export function useLog(study: string, number: number): string | null {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    const stream = new EventSource(`/api/v1/studies/${encodeURIComponent(study)}/trials/${number}/events`);
    stream.addEventListener("log", (event) => {
      const part = JSON.parse((event as MessageEvent<string>).data) as LogEvent;
      setText((before) => ((part.reset ? "" : (before ?? "")) + part.text).slice(-KEPT));
    });
    stream.addEventListener("end", () => stream.close());
    return () => {
      stream.close();
      setText(null);
    };
  }, [study, number]);
  return text;
}
