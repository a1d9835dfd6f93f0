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
