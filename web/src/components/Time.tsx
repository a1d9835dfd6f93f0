import { useNow } from "@/lib/clock";
import { formatAgo, formatDay, formatTime } from "@/lib/format";

/** Show how long ago something was, and the exact time in the viewer's time zone on hover. */
export function Ago({ at }: { at: string }) {
  const time = new Date(at);
  const now = useNow();
  return (
    <time dateTime={at} title={formatTime(time)}>
      {formatAgo(time, now)}
    </time>
  );
}

/** Show the day of a time, and the exact time in the viewer's time zone on hover. */
export function On({ at }: { at: string }) {
  const time = new Date(at);
  return (
    <time dateTime={at} title={formatTime(time)}>
      {formatDay(time)}
    </time>
  );
}
