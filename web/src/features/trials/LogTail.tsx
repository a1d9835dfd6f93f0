import { t } from "@lingui/core/macro";
import { useEffect, useRef, useState } from "react";
import type { LogEvent } from "@/lib/api/client";
import styles from "./LogTail.module.css";

/** Show the output of a running trial. The view follows the end unless the user has scrolled up. */
export function LogTail({ study, number }: { study: string; number: number }) {
  const text = useLog(study, number);
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const element = place.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  if (text === null) return <p className={styles.none}>{t`No output yet.`}</p>;
  return (
    <pre
      ref={place}
      className={styles.log}
      // A scrollable region must be reachable by the keyboard.
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      role="log"
      aria-label={t`Output of trial ${number}`}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        follows.current = scrollTop + clientHeight >= scrollHeight - 8;
      }}
    >
      {text}
    </pre>
  );
}

// Characters: as many as a page can show without becoming slow.
const KEPT = 64_000;

/** Return the end of a trial's output, live while it runs; null until something has arrived. */
function useLog(study: string, number: number): string | null {
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
