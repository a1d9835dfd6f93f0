import type { Study, StudyEvent, Trial } from "@/lib/api/client";

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

export type OpenStream = (address: string) => EventSource;

const EMPTY: Snapshot = { study: null, trials: [], complete: false, sampled: false, connection: "connecting" };
// Of more trials than this the service sends a sample; with so many times as many here, a new one is asked for.
const MOST = 2000;
const TOO_MANY = 4;
const RETRY = [1000, 2000, 5000, 10_000];
// Browsers allow six connections to a host (HTTP/1.1): a tab in the background must not hold one for ever.
const HIDDEN_FOR = 30_000;

/**
 * A study and its trials, kept up to date by the service's event stream. It goes on from the last revision seen after
 * every break. Nothing happens before `start` or after `stop`.
 */
export class StudyFeed {
  private snapshot = EMPTY;
  private readonly byNumber = new Map<number, Trial>();
  private revision = 0;
  private failures = 0;
  private stream: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<() => void>();
  private readonly name: string;
  private readonly open: OpenStream;

  constructor(name: string, open: OpenStream = (address) => new EventSource(address)) {
    this.name = name;
    this.open = open;
  }

  readonly getSnapshot = (): Snapshot => this.snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stop();
    };
  };

  private start(): void {
    document.addEventListener("visibilitychange", this.minded);
    this.connect();
  }

  private stop(): void {
    document.removeEventListener("visibilitychange", this.minded);
    this.disconnect();
  }

  private readonly minded = (): void => {
    if (document.hidden) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.disconnect(), HIDDEN_FOR);
    } else if (this.stream === null && this.snapshot.connection !== "gone") {
      this.connect();
    } else {
      clearTimeout(this.timer);
    }
  };

  private connect(): void {
    this.disconnect();
    const stream = this.open(`/api/v1/studies/${encodeURIComponent(this.name)}/events?after_revision=${this.revision}&most=${MOST}`);
    this.stream = stream;
    stream.addEventListener("change", (event) => this.take(JSON.parse((event as MessageEvent<string>).data) as StudyEvent));
    stream.addEventListener("deleted", () => {
      this.disconnect();
      this.publish({ connection: "gone" });
    });
    stream.addEventListener("error", () => this.retry(stream));
  }

  private disconnect(): void {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  /** Connects anew by itself: a browser gives up for good when an answer is an error. */
  private retry(stream: EventSource): void {
    if (stream !== this.stream) return;
    this.disconnect();
    this.publish({ connection: "waiting" });
    const delay = RETRY[Math.min(this.failures, RETRY.length - 1)] ?? 1000;
    this.failures += 1;
    this.timer = setTimeout(() => this.connect(), delay);
  }

  /** Show these trials as well, as of now: those of a stretch that is looked at more closely. */
  readonly add = (trials: Trial[]): void => {
    for (const trial of trials) {
      const known = this.byNumber.get(trial.number);
      if (known === undefined || known.revision < trial.revision) this.byNumber.set(trial.number, trial);
    }
    this.publish({ trials: this.sorted() });
  };

  private take({ study, trials, revision, more, sampled }: StudyEvent): void {
    this.failures = 0;
    if (sampled || (this.snapshot.study !== null && this.snapshot.study.created_at !== study.created_at)) {
      // A sample stands for itself, and so does another study with the same name.
      this.byNumber.clear();
    }
    for (const trial of trials) this.byNumber.set(trial.number, trial);
    this.revision = revision;
    if (!more && this.byNumber.size > TOO_MANY * MOST) {
      this.revision = 0;
      this.connect();
    }
    this.publish({
      study,
      connection: "live",
      complete: this.snapshot.complete || !more,
      sampled: this.byNumber.size < study.trial_count,
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
