export type OpenStream = (address: string) => EventSource;

const RETRY = [1000, 2000, 5000, 10_000];
// Browsers allow six connections to a host (HTTP/1.1): a tab in the background must not hold one for ever.
const HIDDEN_FOR = 30_000;

interface Options {
  /** Where it is, each time that it is opened. */
  address: () => string;
  /** What is done with the data of each kind of event. */
  events: Record<string, (data: string) => void>;
  /** The connection is gone: `broken` and made again by itself, or `left` until the page is seen again. */
  lost: (how: "broken" | "left") => void;
  open?: OpenStream | undefined;
}

/** An event stream of the service that is opened anew after every break, and held while the page is seen. */
export class LiveStream {
  private stream: EventSource | null = null;
  /** Until it is opened anew, and until a page that is hidden lets go of it. */
  private again: ReturnType<typeof setTimeout> | undefined;
  private leaving: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private readonly options: Options;

  constructor(options: Options) {
    this.options = options;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.minded);
    this.connect();
    if (document.hidden) this.minded();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.minded);
    clearTimeout(this.leaving);
    this.disconnect();
  }

  /** Opens it now, in place of the one that there is. */
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

  private readonly minded = (): void => {
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

  /** Connects anew by itself: a browser gives up for good when an answer is an error. */
  private retry(stream: EventSource): void {
    if (stream !== this.stream) return;
    this.disconnect();
    this.options.lost("broken");
    const delay = RETRY[Math.min(this.failures, RETRY.length - 1)] ?? 1000;
    this.failures += 1;
    this.again = setTimeout(this.connect, delay);
  }
}
