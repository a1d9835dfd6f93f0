// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { changes, KINDS, type Kind } from "./changes";
import type { LiveStream } from "./stream";

class Stream extends EventTarget {
  closed = false;
  close() {
    this.closed = true;
  }
  say(type: string, data: unknown = {}) {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data) }));
  }
}

let streams: Stream[];
let told: Kind[][];
let stream: LiveStream;

function last(): Stream {
  const stream = streams.at(-1);
  if (stream === undefined) throw new Error("no stream");
  return stream;
}

function hide(hidden: boolean) {
  vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

beforeEach(() => {
  vi.useFakeTimers();
  streams = [];
  told = [];
  stream = changes(
    (kinds) => told.push([...kinds]),
    () => {
      streams.push(new Stream());
      return last() as unknown as EventSource;
    },
  );
  stream.start();
});

afterEach(() => {
  stream.stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("kinds are told as they come, after all that may have changed while the stream was being opened", () => {
  expect(told).toEqual([]);
  last().say("ready");
  expect(told).toEqual([[...KINDS]]);
  last().say("change", { kinds: ["studies"] });
  expect(told).toEqual([[...KINDS], ["studies"]]);
});

test("after a break everything may have changed, and it is made up for once", () => {
  last().say("ready");
  told = [];
  last().say("error");
  expect(streams).toHaveLength(1);
  vi.advanceTimersByTime(1000);
  expect(streams).toHaveLength(2);
  last().say("error");
  vi.advanceTimersByTime(1999);
  expect(streams).toHaveLength(2);
  vi.advanceTimersByTime(1);
  last().say("ready");
  expect(told).toEqual([[...KINDS]]);
  last().say("ready");
  expect(told).toHaveLength(1);
});

test("a hidden page holds no connection, and looks anew when it is seen", () => {
  last().say("ready");
  told = [];
  hide(true);
  vi.advanceTimersByTime(30_000);
  expect(last().closed).toBe(true);
  hide(false);
  last().say("ready");
  expect(streams).toHaveLength(2);
  expect(told).toEqual([[...KINDS]]);
});
