import { useMemo, useSyncExternalStore } from "react";
import type { Trial } from "@/lib/api/client";
import { StudyFeed, type Snapshot } from "./feed";

/** Return a study and its trials, live while a component shows them. `add`: see StudyFeed. */
export function useStudyFeed(name: string): Snapshot & { add: (trials: Trial[]) => void } {
  const feed = useMemo(() => new StudyFeed(name), [name]);
  return { ...useSyncExternalStore(feed.subscribe, feed.getSnapshot), add: feed.add };
}
