import { useMemo, useSyncExternalStore } from "react";
import { StudyFeed, type Snapshot } from "./feed";

/** A study and its trials, live for as long as a component shows them. */
export function useStudyFeed(name: string): Snapshot {
  const feed = useMemo(() => new StudyFeed(name), [name]);
  return useSyncExternalStore(feed.subscribe, feed.getSnapshot);
}
