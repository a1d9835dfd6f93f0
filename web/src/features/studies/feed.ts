import { useMemo, useSyncExternalStore } from "react";
import type { Study, StudyEvent, Trial } from "@/lib/api/client";
import { LiveStream, type OpenStream } from "@/lib/stream";

/** `waiting`: the connection was lost and will be retried. `gone`: the study does not exist, or was deleted. */
export type Connection = "connecting" | "live" | "waiting" | "gone";

export interface Snapshot {
  study: Study | null;
  /** Sorted by number. */
  trials: Trial[];
  /** Whether all initial trials have arrived. */
  complete: boolean;
  /** Whether the trials are only a sample. */
  sampled: boolean;
  connection: Connection;
}

const EMPTY: Snapshot = { study: null, trials: [], complete: false, sampled: false, connection: "connecting" };
// With more trials than MOST, the service sends a sample, from which plots are drawn. With TOO_MANY times as many in memory, a new sample is requested.
const MOST = 20_000;
const TOO_MANY = 2;

/**
 * A study and its trials, kept up to date by the service's event stream. After a break it continues from the last revision.
 * It connects only while it has listeners.
 */
export class StudyFeed {
  private snapshot = EMPTY;
  private readonly byNumber = new Map<number, Trial>();
  private revision = 0;
  /** Whether the service has sent a sample. */
  private thinned = false;
  private readonly listeners = new Set<() => void>();
  private readonly stream: LiveStream;

  constructor(
    name: string,
    private readonly most = MOST,
    open?: OpenStream,
  ) {
    this.stream = new LiveStream({
      address: () => `/api/v1/studies/${encodeURIComponent(name)}/events?after_revision=${this.revision}&most=${this.most}`,
      events: {
        change: (data) => this.take(JSON.parse(data) as StudyEvent),
        deleted: () => {
          this.stream.stop();
          this.publish({ connection: "gone" });
        },
      },
      lost: (how) => {
        if (how === "broken") this.publish({ connection: "waiting" });
      },
      open,
    });
  }

  readonly getSnapshot = (): Snapshot => this.snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.stream.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stream.stop();
    };
  };

  private take({ study, trials, revision, more, sampled }: StudyEvent): void {
    if (sampled || (this.snapshot.study !== null && this.snapshot.study.created_at !== study.created_at)) {
      // A sample replaces all trials, and so does another study with the same name.
      this.byNumber.clear();
      this.thinned = sampled;
    }
    for (const trial of trials) this.byNumber.set(trial.number, trial);
    this.revision = revision;
    if (!more && this.byNumber.size > TOO_MANY * this.most) {
      this.revision = 0;
      this.stream.connect();
    }
    this.publish({
      study,
      connection: "live",
      complete: this.snapshot.complete || !more,
      sampled: this.thinned && this.byNumber.size < study.trial_count,
      trials: trials.length === 0 && this.byNumber.size === this.snapshot.trials.length ? this.snapshot.trials : this.sorted(),
    });
  }

  private sorted(): Trial[] {
    return [...this.byNumber.values()].sort((a, b) => a.number - b.number);
  }

  private publish(changes: Partial<Snapshot>): void {
    this.snapshot = { ...this.snapshot, ...changes };
    for (const listener of this.listeners) listener();
  }
}

/** Return a study and its trials, live while a component shows them. With more than `most` trials, they are a sample. */
export function useStudyFeed(name: string, most?: number): Snapshot {
  const feed = useMemo(() => new StudyFeed(name, most), [name, most]);
  return useSyncExternalStore(feed.subscribe, feed.getSnapshot);
}
