export type OpenStream = (address: string) => EventSource;

const RETRY = [1000, 2000, 5000, 10_000];
// Browsers allow six connections per host (HTTP/1.1), so a tab in the background must release its connection.
const HIDDEN_FOR = 30_000;

interface Options {
  /** Return the address; called each time the stream is opened. */
  address: () => string;
  /** The handler for the data of each kind of event. */
  events: Record<string, (data: string) => void>;
  /** Called when the connection ends: `broken` is followed by a retry, `left` waits until the page is visible again. */
  lost: (how: "broken" | "left") => void;
  open?: OpenStream | undefined;
}

/** An event stream that reconnects after every break, and disconnects while the page is hidden. */
export class LiveStream {
  private stream: EventSource | null = null;
  /** The timers of the next retry, and of the disconnection of a hidden page. */
  private again: ReturnType<typeof setTimeout> | undefined;
  private leaving: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private readonly options: Options;

  constructor(options: Options) {
    this.options = options;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.visibilityChanged);
    this.connect();
    if (document.hidden) this.visibilityChanged();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.visibilityChanged);
    clearTimeout(this.leaving);
    this.disconnect();
  }

  /** Open the stream now. A stream that is already open is closed first. */
  readonly connect = (): void => {
    this.disconnect();
    const { address, events, open = (address: string) => new EventSource(address) } = this.options;
    const stream = open(address());
    this.stream = stream;
    for (const [kind, take] of Object.entries(events)) {
      stream.addEventListener(kind, (event) => {
        this.failures = 0;
        take((event as MessageEvent<string>).data);
      });
    }
    stream.addEventListener("error", () => this.retry(stream));
  };

  private disconnect(): void {
    clearTimeout(this.again);
    this.stream?.close();
    this.stream = null;
  }

  private readonly visibilityChanged = (): void => {
    clearTimeout(this.leaving);
    if (document.hidden) {
      this.leaving = setTimeout(() => {
        this.disconnect();
        this.options.lost("left");
      }, HIDDEN_FOR);
    } else if (this.stream === null) {
      this.connect();
    }
  };

  /** Reconnect after a delay. A browser's own EventSource gives up when an answer is an error. */
  private retry(stream: EventSource): void {
    if (stream !== this.stream) return;
    this.disconnect();
    this.options.lost("broken");
    const delay = RETRY[Math.min(this.failures, RETRY.length - 1)] ?? 1000;
    this.failures += 1;
    this.again = setTimeout(this.connect, delay);
  }
}
