import { LiveStream, type OpenStream } from "./stream";

/** The kinds of lists of a tenant. */
export type Kind = "agents" | "components" | "notices" | "studies";

export const KINDS: readonly Kind[] = ["agents", "components", "notices", "studies"];

/**
 * Return a stream that reports which kinds of the tenant's lists have changed. When the stream begins it reports all kinds: the page
 * has fetched its data before the stream was open, or before it broke.
 */
export function changes(report: (kinds: readonly Kind[]) => void, open?: OpenStream): LiveStream {
  // Whether the page may show data from before this stream.
  let missed = true;
  return new LiveStream({
    address: () => "/api/v1/events",
    events: {
      ready: () => {
        if (missed) report(KINDS);
        missed = false;
      },
      change: (data) => report((JSON.parse(data) as { kinds: Kind[] }).kinds),
    },
    lost: () => {
      missed = true;
    },
    open,
  });
}

/** Runs a task when asked to, with at least `pause` milliseconds after each run. All requests during a run become one more run. */
export class Paced {
  private wanted = false;
  private busy = false;
  private stopped = false;
  private readonly task: () => Promise<unknown>;
  private readonly pause: number;

  constructor(task: () => Promise<unknown>, pause: number) {
    this.task = task;
    this.pause = pause;
  }

  ask(): void {
    this.wanted = true;
    if (!this.busy) void this.run();
  }

  stop(): void {
    this.stopped = true;
  }

  private async run(): Promise<void> {
    this.busy = true;
    while (this.wanted && !this.stopped) {
      this.wanted = false;
      await this.task().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, this.pause));
    }
    this.busy = false;
  }
}
