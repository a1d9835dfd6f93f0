import { useEffect, useState } from "react";

/** Milliseconds without a change before the service is asked. */
const PAUSE = 350;

/** Return plain data after the user has paused typing. */
export function useSettled<T>(data: T): T {
  const text = JSON.stringify(data);
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return JSON.parse(settled) as T;
}
