import { useEffect, useRef, useState } from "react";

/** Return the time, updated every `every` milliseconds. */
export function useNow(every = 10_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** Return `value`, changed at most once per `milliseconds`. The last change is never lost. */
export function useThrottled<T>(value: T, milliseconds: number): T {
  const [shown, setShown] = useState(value);
  const last = useRef(0);
  useEffect(() => {
    const timer = setTimeout(
      () => {
        last.current = Date.now();
        setShown(value);
      },
      Math.max(0, last.current + milliseconds - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return shown;
}

/** Return `value` after it has not changed for `milliseconds`. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** Return plain data after it has not changed for the time of a pause in typing: then the service is asked. */
export function useSettledData<T>(data: T): T {
  return JSON.parse(useSettled(JSON.stringify(data), 350)) as T;
}

/** Return `value`, or its last known value while it is undefined. */
export function useLast<T>(value: T | undefined): T | undefined {
  const [last, setLast] = useState(value);
  if (value !== undefined && value !== last) setLast(value);
  return value ?? last;
}

/** Return the start of a day ("2026-01-31") in the viewer's time zone, `later` days later; undefined if there is no such day. */
export function startOfDay(day: string, later = 0): string | undefined {
  const [year, month, date] = day.split("-").map(Number);
  const start = new Date(year ?? NaN, (month ?? NaN) - 1, (date ?? NaN) + later);
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}
