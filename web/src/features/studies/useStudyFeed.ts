import { useMemo, useSyncExternalStore } from "react";
import { StudyFeed, type Snapshot } from "./feed";

/** Return a study and its trials, live while a component shows them. With more than `most` trials, they are a sample. */
export function useStudyFeed(name: string, most?: number): Snapshot {
  const feed = useMemo(() => new StudyFeed(name, most), [name, most]);
  return useSyncExternalStore(feed.subscribe, feed.getSnapshot);
}
