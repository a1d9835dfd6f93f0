import type { Study, StudyEvent, Trial } from "@/lib/api/client";
import { LiveStream, type OpenStream } from "@/lib/stream";

/** `waiting`: the connection was lost and is made again. `gone`: the study is not there (any more). */
export type Connection = "connecting" | "live" | "waiting" | "gone";

export interface Snapshot {
  study: Study | null;
  /** By number. */
  trials: Trial[];
  /** Whether what there was at first has arrived. */
  complete: boolean;
  /** Whether the trials are only a sample of all that there are. */
  sampled: boolean;
  connection: Connection;
}

const EMPTY: Snapshot = { study: null, trials: [], complete: false, sampled: false, connection: "connecting" };
// Of more trials than this the service sends a sample; with so many times as many here, a new one is asked for.
const MOST = 2000;
const TOO_MANY = 4;

/**
 * A study and its trials, kept up to date by the service's event stream. It goes on from the last revision seen after
 * every break. Nothing happens while nobody listens.
 */
export class StudyFeed {
  private snapshot = EMPTY;
  private readonly byNumber = new Map<number, Trial>();
  private revision = 0;
  /** Whether the service has left trials out; one that is only on its way is not left out. */
  private thinned = false;
  private readonly listeners = new Set<() => void>();
  private readonly stream: LiveStream;

  constructor(name: string, open?: OpenStream) {
    this.stream = new LiveStream({
      address: () => `/api/v1/studies/${encodeURIComponent(name)}/events?after_revision=${this.revision}&most=${MOST}`,
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

  /**
   * Show these trials as well: those of a stretch that is looked at more closely. What changed after the study that is shown comes
   * with the stream, together with the study's counts of it.
   */
  readonly add = (trials: Trial[]): void => {
    const shown = this.snapshot.study?.revision ?? 0;
    for (const trial of trials) {
      if (trial.revision <= shown && !this.byNumber.has(trial.number)) this.byNumber.set(trial.number, trial);
    }
    this.publish({ trials: this.sorted() });
  };

  private take({ study, trials, revision, more, sampled }: StudyEvent): void {
    if (sampled || (this.snapshot.study !== null && this.snapshot.study.created_at !== study.created_at)) {
      // A sample stands for itself, and so does another study with the same name.
      this.byNumber.clear();
      this.thinned = sampled;
    }
    for (const trial of trials) this.byNumber.set(trial.number, trial);
    this.revision = revision;
    if (!more && this.byNumber.size > TOO_MANY * MOST) {
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
