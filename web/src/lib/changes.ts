import { LiveStream, type OpenStream } from "./stream";

/** What lists there are of a tenant's things. */
export type Kind = "agents" | "components" | "studies";

export const KINDS: readonly Kind[] = ["agents", "components", "studies"];

/**
 * Tells what kinds of things have changed in the tenant, from the service's event stream. Whenever that begins all may have:
 * what a page shows was asked for while the stream was being opened, or before it broke.
 */
export function changes(tell: (kinds: readonly Kind[]) => void, open?: OpenStream): LiveStream {
  // Whether what is shown may be of before this stream.
  let missed = true;
  return new LiveStream({
    address: () => "/api/v1/events",
    events: {
      ready: () => {
        if (missed) tell(KINDS);
        missed = false;
      },
      change: (data) => tell((JSON.parse(data) as { kinds: Kind[] }).kinds),
    },
    lost: () => {
      missed = true;
    },
    open,
  });
}
