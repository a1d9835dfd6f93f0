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
