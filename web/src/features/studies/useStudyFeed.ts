import { useMemo, useSyncExternalStore } from "react";
import type { Trial } from "@/lib/api/client";
import { StudyFeed, type Snapshot } from "./feed";

/** A study and its trials, live for as long as a component shows them; `add` as in the feed. */
export function useStudyFeed(name: string): Snapshot & { add: (trials: Trial[]) => void } {
  const feed = useMemo(() => new StudyFeed(name), [name]);
  return { ...useSyncExternalStore(feed.subscribe, feed.getSnapshot), add: feed.add };
}
