import { t } from "@lingui/core/macro";
import { useEffect, useRef } from "react";
import { useLog } from "./log";
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
